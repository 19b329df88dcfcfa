"""Forecasts of airline passengers, compared with seasonal naive, AutoETS and AutoARIMA.

    python -m benchmarks.forecasting --data FOLDER [--picture docs/images/airline.png]

The last 24 months are the test: forecasts of 12 months from each of 13 origins. Networks are
trained once on the months before; the recipe holds out the last year of these for the scores.
The classical methods are fitted again at each origin. `--develop` ends two years earlier, where the
recipe's settings were chosen.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import data, results
from benchmarks.pictures import picture
from examples.demo_parts.pictures import BLUE, GREY, ORANGE
from models.config import (
    BBBConfig,
    DropoutConfig,
    EnsembleConfig,
    ForecastConfig,
    Json,
    MAPConfig,
    MLPConfig,
    ModelConfig,
    RecurrentConfig,
    TrainingConfig,
)
from models.evaluation.metrics import regression_scores
from models.features.columns import ColumnProfile, Columns
from models.forecasting.backtest import seasonal_naive, summarise_scores
from models.forecasting.model import Forecaster
from models.forecasting.origins import Origin, origins
from models.forecasting.series import split_series
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train
from worker.baselines.classical import scores_of

TEST, HORIZON, SEASON = 24, 12, 12
TYPES = {"Month": "datetime", "Passengers": "number"}
LSTM = RecurrentConfig(kind="lstm", hidden=(16,))
GRU = MLPConfig()  # for forecasting, the recipe replaces it by a GRU
MODELS: dict[str, Json] = {
    "bbb, GRU (recipe)": {"network": GRU, "method": BBBConfig()},
    "bbb, LSTM": {"network": LSTM, "method": BBBConfig()},
    "ensemble of 5, LSTM": {"network": LSTM, "method": EnsembleConfig(kind="ensemble")},
    "mc_dropout, LSTM": {"network": LSTM, "method": DropoutConfig(kind="mc_dropout")},
    "map, LSTM": {"network": LSTM, "method": MAPConfig(kind="map")},
}


def fit(columns: Columns, seed: int, **options: Any) -> Forecaster:
    """Train with the recipe, without pruned variants."""
    profiles = [ColumnProfile(name=name, type=type_) for name, type_ in TYPES.items()]
    pruning = () if isinstance(options["method"], BBBConfig) else None
    wanted = ModelConfig(
        target="Passengers",
        task="forecasting",
        training=TrainingConfig(seed=seed),
        pruning=pruning,
        **options,
    )
    rows = len(columns["Month"])
    config = resolve(wanted, profiles, rows, lambda names: {n: columns[n] for n in names})
    model = train(columns, TYPES, config)
    assert isinstance(model, Forecaster)
    return model


def classical(chosen: list[Origin]) -> dict[str, Callable[[], Json]]:
    """The classical methods, each as a function that returns its scores."""
    targets = torch.from_numpy(np.concatenate([o.targets(HORIZON) for o in chosen]))
    naive = regression_scores(seasonal_naive(chosen, SEASON, HORIZON), targets)

    def fitted(label: str) -> Json:
        return summarise_scores(scores_of(label, chosen, SEASON, HORIZON), chosen, SEASON)

    return {
        "seasonal naive": lambda: summarise_scores(naive, chosen, SEASON),
        "AutoETS (statsforecast)": lambda: fitted("AutoETS"),
        "AutoARIMA (statsforecast)": lambda: fitted("AutoARIMA"),
    }


def run(columns: Columns, stop: int, seeds: int) -> dict[str, list[Json]]:
    """Scores by method and seed on the `TEST` months before `stop`."""
    learned = {name: values[: stop - TEST] for name, values in columns.items()}
    known = {name: values[:stop] for name, values in columns.items()}
    series = split_series(known, "Passengers", ForecastConfig(time="Month"))
    chosen = origins(series, [stop - TEST], 2 * SEASON, HORIZON)
    found: dict[str, list[Json]] = {}
    for name, scored in classical(chosen).items():
        _note(found, name, scored)
    for name, options in MODELS.items():
        for seed in range(seeds):
            _note(found, name, lambda o=options, s=seed: _score(fit(learned, s, **o), chosen))
    return found


def _score(model: Forecaster, chosen: list[Origin]) -> Json:
    return model.score_origins(chosen, prune=0.0, samples=100)


def _note(found: dict[str, list[Json]], name: str, scored: Callable[[], Json]) -> None:
    started = time.perf_counter()
    metrics = scored() | {"seconds": time.perf_counter() - started}
    found.setdefault(name, []).append(metrics)
    print(f"{name}: CRPS {metrics['crps']:.2f}, MASE {metrics['mase']:.3f}", flush=True)


def table(found: dict[str, list[Json]]) -> str:
    """One line per method, with means over the seeds."""
    headers = ["method", "CRPS", "MASE", "log likelihood", "90 % interval covers", "its width"]

    def mean(runs: list[Json], read: Callable[[Json], float]) -> float:
        return float(np.mean([read(one) for one in runs]))

    lines = [
        [
            name,
            f"{mean(runs, lambda m: m['crps']):.1f}",
            f"{mean(runs, lambda m: m['mase']):.2f}",
            f"{mean(runs, lambda m: m['log_likelihood']):.2f}".replace("-", "−"),
            f"{100 * mean(runs, lambda m: m['coverage']['0.9']):.0f} %",
            f"{mean(runs, lambda m: m['interval_width']['0.9']):.0f}",
            f"{mean(runs, lambda m: m['seconds']):.0f}",
        ]
        for name, runs in found.items()
    ]
    return results.markdown([*headers, "seconds"], lines)


def draw(columns: Columns, path: Path) -> None:
    """Draw a forecast of two years: mean, intervals and their epistemic part."""
    learned = {name: values[:-TEST] for name, values in columns.items()}
    model = fit(learned, 0, **MODELS["bbb, GRU (recipe)"])
    options = PredictOptions(samples=200, horizon=TEST, intervals=(0.5, 0.9))
    prediction = model.predict(learned, options)
    half, most = prediction.intervals
    band = 1.645 * np.sqrt(prediction.variance["epistemic"])
    times, shown = columns["Month"], slice(-84, None)
    ahead = times[-TEST:]
    with picture(path, 1, 1, (8.0, 3.8)) as axes:
        axis = axes[0][0]
        axis.fill_between(ahead, most.lower, most.upper, color=BLUE, alpha=0.15, label="90 %")
        axis.fill_between(ahead, half.lower, half.upper, color=BLUE, alpha=0.25, label="50 %")
        axis.fill_between(
            ahead,
            prediction.mean - band,
            prediction.mean + band,
            facecolor="none",
            edgecolor=ORANGE,
            linestyle="--",
            label="90 %, only epistemic",
        )
        axis.plot(times[shown], columns["Passengers"][shown], color=GREY, label="passengers")
        axis.plot(ahead, prediction.mean, color=BLUE, label="mean of the forecast")
        axis.axvline(times[-TEST - 1], color=GREY, linewidth=0.8, linestyle=":")
        axis.set(ylabel="thousand passengers", title="Two years ahead, bbb with a GRU")
        axis.legend(loc="upper left")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="see benchmarks/data.py")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--develop", action="store_true", help="use origins two years earlier")
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    columns = data.airline(arguments.data)
    if arguments.picture:
        draw(columns, arguments.picture)
        return
    stop = len(columns["Month"]) - (TEST if arguments.develop else 0)
    found = run(columns, stop, arguments.seeds)
    name = "forecasting-develop" if arguments.develop else "forecasting"
    results.save(name, {"machine": results.machine(), "test_until": stop, "scores": found})
    print(table(found))


if __name__ == "__main__":
    main()
