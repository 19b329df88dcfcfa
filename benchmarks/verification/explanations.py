"""Whether contributions deviate as their errors say; the time of an explained row, and a picture.

    python -m benchmarks.verification.explanations [--picture docs/images/explain.svg]

Times are ratios from interleaved runs: one row with `explain`, the rows that are predicted for it,
and one row without.
"""

import argparse
import csv
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.interleaving import interleave, ratio
from benchmarks.pictures import picture
from benchmarks.verification.check import Check, Scale
from examples.bike_hires import HEADER, rows
from examples.demo_parts.pictures import BLUE, GREY, ORANGE
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.prediction.options import PredictOptions, Sampler
from models.prediction.outputs.contributions import PARTS
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

TITLES = {
    "mean": "mean (hires)",
    "aleatoric": "noise (hires²)",
    "epistemic": "ignorance (hires²)",
}
HOURS: Columns = {
    "hour": np.array([17.0, 3.0]),
    "weekday": np.array(["Fri", "Sun"], object),
    "temperature": np.array([15.0, 32.0]),
    "wind": np.array([4.0, 4.0]),
}
NAMES = ("a busy hour: 17:00, 15 °C", "a hot night: 3:00, 32 °C")

ROWS, BACKGROUND, REPETITIONS, SAMPLES = 400, 64, 60, 100


def checks(scale: Scale) -> list[Check]:
    """Actual ÷ stated errors of the contributions, of each part and sampler.

    Each repetition has a seed and a background of its own: what errors are about.
    """
    training = TrainingConfig(epochs=100, fine_tune_epochs=0)
    model = fit(_table(0, ROWS), "y", training, network=MLPConfig(hidden=(20, 20)))
    asked = {name: np.array([-1.5, 0.0, 1.0, 2.5]) for name in ("a", "b", "idle")}
    repetitions = REPETITIONS if scale == "full" else REPETITIONS // 4
    samplers: tuple[Sampler, ...] = ("sobol", "monte_carlo")
    return [check for sampler in samplers for check in _ratios(model, asked, sampler, repetitions)]


def _table(seed: int, rows: int) -> Columns:
    """The mean depends on a and b, the noise on a; `idle` does nothing."""
    random = np.random.default_rng(seed)
    a, b, idle, noise = random.normal(size=(4, rows))
    return {"a": a, "b": b, "idle": idle, "y": 2 * a + b**2 + 0.5 * np.exp(0.5 * a) * noise}


def _ratios(
    model: TabularModel, asked: Columns, sampler: Sampler, repetitions: int
) -> Iterator[Check]:
    """Root mean squares over rows and features."""
    runs = []
    for seed in range(repetitions):
        background = model.encoder.encode_inputs(_table(seed + 1, BACKGROUND))
        own = replace(model, background=background)
        options = PredictOptions(explain=True, samples=SAMPLES, seed=seed, sampler=sampler)
        runs.append(own.predict(asked, options))
    for part in PARTS:
        actual = np.stack([run[f"{part}_contribution"] for run in runs]).var(0, ddof=1).mean()
        stated = np.stack([run[f"{part}_contribution_error"] for run in runs])
        yield Check(
            f"{sampler}, {SAMPLES} samples: actual ÷ stated error of contributions to {part}",
            "0.8 to 1.2",
            float(np.sqrt(actual / np.square(stated).mean())),
            0.8,
            1.2,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, help="where to write the picture")
    parser.add_argument("--repetitions", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.picture is not None:
        draw(bikes(), arguments.picture)
    for features in (4, 10, 30, 100):
        print(cost(features, arguments.repetitions))


def bikes() -> TabularModel:
    """A model of the dashboard's example data."""
    names = HEADER.split(",")
    cells = list(zip(*csv.reader(rows()), strict=True))
    columns = {
        name: np.array(values, object) if name == "weekday" else _numbers(values)
        for name, values in zip(names, cells, strict=True)
    }
    return fit(columns, "hires", TrainingConfig(epochs=200))


def _numbers(texts: tuple[str, ...]) -> np.ndarray:
    return np.array([float(text) if text else np.nan for text in texts])


def fit(columns: Columns, target: str, training: TrainingConfig, **config: Any) -> TabularModel:
    """A model by the recipe, as the service trains it."""
    profiles = [_profile(name, values) for name, values in columns.items()]
    wanted = ModelConfig(target=target, training=training, pruning=(), **config)
    resolved = resolve(wanted, profiles, len(columns[target]))
    model = train(columns, {p.name: p.type for p in profiles}, resolved)
    assert isinstance(model, TabularModel)
    return model


def _profile(name: str, values: np.ndarray) -> ColumnProfile:
    if values.dtype == object:
        return ColumnProfile(name=name, type="category", levels=tuple(sorted(set(values.tolist()))))
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return ColumnProfile(name=name, type="number", min=low, max=high)


def cost(features: int, repetitions: int) -> str:
    """Milliseconds of an explained row, relative to the rows that it takes and to one row."""
    random = np.random.default_rng(0)
    table = {f"x{i}": random.normal(size=500) for i in range(features)}
    table["y"] = table["x0"] + random.normal(size=500)
    quick = TrainingConfig(epochs=2, fine_tune_epochs=0)
    model = fit(table, "y", quick, network=MLPConfig(hidden=(50,)))
    explainer = model.explainer
    assert explainer is not None
    x = model.encode({name: values[:1] for name, values in table.items()})
    many = x.repeat(explainer.evaluations, 1)
    plain = PredictOptions(intervals=())
    runs = {
        "explain": _timed(lambda: model.predict_rows(x, PredictOptions(explain=True))),
        "rows": _timed(lambda: model.predict_rows(many, plain)),
        "one": _timed(lambda: model.predict_rows(x, plain)),
    }
    for run in runs.values():
        run()
    times = interleave(runs, dict.fromkeys(runs, repetitions))
    return (
        f"{features} features, {explainer.evaluations} evaluations: "
        f"{1000 * statistics.median(times['explain']):.0f} ms an explained row, "
        f"{ratio(times['explain'], times['rows']):.2f} × its rows, "
        f"{ratio(times['explain'], times['one']):.0f} × one row"
    )


def _timed(work: Callable[[], object]) -> Callable[[], float]:
    def run() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    return run


def draw(model: TabularModel, path: Path) -> None:
    """Bars of the contributions of two hours, with their standard errors."""
    found = model.predict(HOURS, PredictOptions(explain=True))
    features = found.constants["features"]
    places = np.arange(len(features))
    with picture(path, len(NAMES), len(PARTS), (9.5, 4.6)) as axes:
        for row, name in enumerate(NAMES):
            for column, part in enumerate(PARTS):
                values = found[f"{part}_contribution"][row]
                errors = 2 * found[f"{part}_contribution_error"][row]
                colour = (BLUE, ORANGE, "#3a8f5c")[column]
                axis = axes[row][column]
                axis.barh(places, values, xerr=errors, color=colour, ecolor=GREY)
                axis.axvline(0, color=GREY, linewidth=0.8)
                axis.set_yticks(places, features if column == 0 else [""] * len(places))
                axis.invert_yaxis()
                axis.set_title(f"{name}\n{TITLES[part]}" if column == 0 else f"\n{TITLES[part]}")


if __name__ == "__main__":
    main()
