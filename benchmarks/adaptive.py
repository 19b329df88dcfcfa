"""Coverage of 90 % intervals while labels come: credible, conformal and adaptive ones.

    python -m benchmarks.adaptive [--data FOLDER] [--picture docs/images/adaptive.svg]

Simulated errors whose deviation changes from that of 200 calibration rows, and one-step and
many-step forecasts of the series in FOLDER/forecasts. A forecaster learns the first half of a
series, whose last 30 % calibrate it. Then it forecasts from every later step, and each forecast's
labels arrive together, when its last step is known. Adaptive intervals are given at the level that
follows from the labels that had arrived when the forecast was made.
"""

import argparse
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benchmarks import results
from benchmarks.pictures import picture
from core.database.schema import FeedbackRow
from core.predictions.adaptation import describe, labels_of
from examples.demo_parts.pictures import BLUE, GREY
from models.config import DropoutConfig, ForecastConfig, ModelConfig, TrainingConfig
from models.evaluation.adaptive import (
    Labels,
    allowed_score,
    covered,
    follow,
)
from models.evaluation.conformal_rank import Reference, conformal_rank
from models.evaluation.metrics import CONFORMAL_SCORE
from models.features.columns import ColumnProfile, Columns
from models.forecasting.model import Forecaster
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

LEVEL, ROWS, CALIBRATION, WINDOW, SEEDS = 0.9, 1000, 200, 200, 20
DRAWN = 5  # every so many points are drawn
NOON = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = {"time": "datetime", "y": "number"}
SCALES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "no change": np.ones_like,
    "doubles at half time": lambda t: np.where(t < 0.5, 1.0, 2.0),
    "grows to three times": lambda t: 1 + 2 * t,
    "a season of 200 rows, ± 50 %": lambda t: 1 + 0.5 * np.sin(2 * np.pi * 5 * t),
}
HEADERS = ["90 % interval of", "conformal", "worst 200 rows", "adaptive", "worst 200 rows "]


def simulate(
    scale: Callable[[np.ndarray], np.ndarray], seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether conformal and adaptive intervals held each row, and the level that was adapted."""
    random = np.random.default_rng(seed)
    reference = Reference(
        np.sort(np.abs(random.standard_normal(CALIBRATION))), np.ones(CALIBRATION)
    )
    scores = np.abs(scale(np.arange(ROWS) / ROWS) * random.standard_normal(ROWS))
    half = reference.scores[conformal_rank(CALIBRATION, LEVEL) - 1]
    labels = Labels.newest(scores.tolist(), range(ROWS))
    path = follow(reference, labels, [LEVEL])
    adaptive = covered(reference, labels, path)[:, 0]
    return (scores <= half).astype(float), adaptive, path[:-1, 0]


def local(inside: np.ndarray) -> np.ndarray:
    """The share of each `WINDOW` rows."""
    return np.convolve(inside, np.ones(WINDOW) / WINDOW, "valid")


def simulated() -> str:
    """Coverage over all rows, and in the worst window of the mean over the seeds."""
    lines = []
    for name, scale in SCALES.items():
        runs = [simulate(scale, seed) for seed in range(SEEDS)]
        line = [name]
        for inside in (np.mean([run[kind] for run in runs], axis=0) for kind in (0, 1)):
            worst = local(inside)[np.abs(local(inside) - LEVEL).argmax()]
            line += [_percent(inside.mean()), _percent(worst)]
        lines.append(line)
    return results.markdown(HEADERS, lines)


def fit(columns: Columns) -> Forecaster:
    """A forecaster of one step, calibrated on the last 30 % of these rows."""
    training = TrainingConfig(epochs=150, calibration_fraction=0.3, validation_fraction=0.05)
    wanted = ModelConfig(
        target="y",
        task="forecasting",
        forecast=ForecastConfig(time="time", horizon=1),
        method=DropoutConfig(kind="mc_dropout"),
        training=training,
    )
    profiles = [ColumnProfile(name=name, type=type_) for name, type_ in TYPES.items()]
    rows = len(columns["y"])
    config = resolve(wanted, profiles, rows, lambda names: {n: columns[n] for n in names})
    model = train(columns, TYPES, config)
    assert isinstance(model, Forecaster)
    return model


def roll(model: Forecaster, columns: Columns, start: int, steps: int) -> list[dict[str, list]]:
    """The scores of forecasts from every step, as the service scores labels."""
    found = []
    options = model.resolve(PredictOptions(horizon=steps))
    for first in range(start, len(columns["y"]) - steps + 1):
        past = {name: values[:first] for name, values in columns.items()}
        truth = columns["y"][first : first + steps]
        scores = model.row_scores(model.read(past, None, options), truth, options)
        found.append({name: values.tolist() for name, values in scores.items()})
    return found


def compare(model: Forecaster, columns: Columns, start: int, steps: int) -> list[str]:
    """Coverage of each kind, and how much wider adaptive intervals are."""
    made = roll(model, columns, start, steps)
    rows = [
        FeedbackRow(
            number=i,
            scores=scores,
            predicted_at=NOON + timedelta(minutes=i),
            created_at=NOON + timedelta(minutes=i + steps - 0.5),
        )
        for i, scores in enumerate(made)
    ]
    reference = model.variant(0.0).reference
    calibration = model.variant(0.0).calibration
    if reference is None or calibration is None:
        raise SystemExit("the series is too short: no calibration")
    labels = labels_of(rows)
    told = describe(labels, reference)["adaptive_coverage"][f"{LEVEL:g}"]
    scores, path = np.asarray(labels.scores), follow(reference, labels, [LEVEL])[:, 0]
    reach = [allowed_score(reference, scores[:k], path[k]) for k in labels.known if k]
    width = np.median(reach) / calibration.score(LEVEL)  # type: ignore[union-attr]
    plain = (
        np.mean([s[name] for s in made]) for name in ("coverage_0.9", "conformal_coverage_0.9")
    )
    unbounded = np.mean(np.isinf(reach))
    assert CONFORMAL_SCORE in made[0]
    covers = [_percent(share) for share in (*plain, told)]
    return [str(len(scores)), *covers, f"{width:.2f}", _percent(unbounded)]


def forecasts(folder: Path) -> str:
    """A line for each series and number of steps ahead."""
    about = json.loads((folder / "series.json").read_text())
    lines = []
    for name, series in about.items():
        table = np.genfromtxt(folder / f"{name}.csv", delimiter=",", skip_header=1, dtype=str)
        columns = {
            "time": table[:, 0].astype("datetime64[us]"),
            "y": table[:, 1].astype(np.float64),
        }
        half = len(table) // 2
        model = fit({key: values[:half] for key, values in columns.items()})
        for steps in (1, series["horizon"]):
            lines.append([name, str(steps), *compare(model, columns, half, steps)])
            print(*lines[-1], flush=True)
    headers = ["series", "steps", "labels", "credible", "conformal", "adaptive"]
    return results.markdown([*headers, "width ÷ conformal", "unbounded"], lines)


def draw(path: Path) -> None:
    """Draw the coverage of the last 200 rows with and without adaptation; noise doubles."""
    runs = [simulate(SCALES["doubles at half time"], seed) for seed in range(SEEDS)]
    with picture(path, 1, 2, (9.0, 3.2)) as (axes,):
        rows = np.arange(WINDOW, ROWS + 1, DRAWN)
        for kind, (name, colour) in enumerate((("conformal", GREY), ("adaptive", BLUE))):
            shares = np.array([local(run[kind])[::DRAWN] for run in runs])
            low, high = np.quantile(shares, [0.1, 0.9], axis=0)
            axes[0].fill_between(rows, 100 * low, 100 * high, color=colour, alpha=0.2, linewidth=0)
            axes[0].plot(rows, 100 * shares.mean(0), color=colour, label=name)
        axes[0].set(title="targets in 90 % intervals, last 200 rows (%)", xlabel="labels")
        axes[0].legend(frameon=False)
        levels = 100 * np.array([run[2] for run in runs])[:, ::DRAWN]
        every = np.arange(0, ROWS, DRAWN)
        axes[1].plot(every, levels[0], color=BLUE, alpha=0.35, label="one run")
        axes[1].plot(every, levels.mean(0), color=BLUE, label=f"mean of {SEEDS}")
        axes[1].set(title="adapted level (%)", xlabel="labels")
        axes[1].legend(frameon=False)
        for axis in axes:
            axis.axhline(100 * LEVEL, color=GREY, linestyle=":", linewidth=1)
            axis.axvline(ROWS / 2, color=GREY, linestyle=":", linewidth=1)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="has the folder forecasts")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    print(simulated(), flush=True)
    if given.picture:
        draw(given.picture)
    if given.data:
        print(forecasts(given.data / "forecasts"))


if __name__ == "__main__":
    main()
