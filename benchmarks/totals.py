"""Coverage of 90 % intervals of steps and of sums over the horizon.

    python -m benchmarks.totals [--data FOLDER] [--length 240] [--seeds 2] [--quick]

Simulated series, and those in FOLDER/forecasts. A forecaster with default settings (`--quick`: a
small network, few epochs) learns each series but for a held-out end, from whose origins it
forecasts. Sums are those of whole paths: as
calibrated, as the model draws them, and with independent steps.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from benchmarks import results
from models.config import ForecastConfig, MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.forecasting.forecast import Forecast
from models.forecasting.model import Forecaster
from models.forecasting.totals.sums import Sums
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

LEVEL, SAMPLES, HELD_OUT = 0.9, 100, 0.25
TYPES = {"time": "number", "y": "number"}
HEADERS = ["series", "origins", "steps", "sums", "paths' own", "independent", "conformal", "θ"]
Process = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def recursion(shocks: np.ndarray, phi: float) -> np.ndarray:
    """y_t = φ y_{t−1} + a shock."""
    found = np.zeros_like(shocks)
    for t in range(len(shocks)):
        found[t] = (phi * found[t - 1] if t else 0.0) + shocks[t]
    return found


PROCESSES: dict[str, Process] = {
    "noise": lambda t, r: r.normal(size=len(t)),
    "AR(1), 0.5": lambda t, r: recursion(r.normal(size=len(t)), 0.5),
    "AR(1), 0.9": lambda t, r: recursion(r.normal(size=len(t)), 0.9),
    "AR(1), −0.6": lambda t, r: recursion(r.normal(size=len(t)), -0.6),
    "random walk": lambda t, r: r.normal(size=len(t)).cumsum(),
    "with drift": lambda t, r: (0.3 + r.normal(size=len(t))).cumsum(),
    "heavy tails": lambda t, r: r.standard_t(3, size=len(t)).cumsum(),
    "level and noise": lambda t, r: 0.3 * r.normal(size=len(t)).cumsum() + r.normal(size=len(t)),
    "season": lambda t, r: 3 * np.sin(np.pi * t / 6) + r.normal(size=len(t)),
    "season, AR(1)": lambda t, r: 3 * np.sin(np.pi * t / 6) + recursion(r.normal(size=len(t)), 0.8),
    "growing season": lambda t, r: np.exp(
        0.01 * t + 0.3 * np.sin(np.pi * t / 6) + recursion(0.05 * r.normal(size=len(t)), 0.7)
    ),
}


def simulated(length: int, seeds: int) -> Iterator[tuple[str, np.ndarray, int, int | None]]:
    for name, process in PROCESSES.items():
        for seed in range(seeds):
            values = process(np.arange(float(length)), np.random.default_rng(seed))
            yield name, values, 12, 12 if "season" in name else None


def stored(folder: Path) -> Iterator[tuple[str, np.ndarray, int, int | None]]:
    for name, about in json.loads((folder / "series.json").read_text()).items():
        table = np.genfromtxt(folder / f"{name}.csv", delimiter=",", skip_header=1, dtype=str)
        yield name, table[:, 1].astype(np.float64), about["horizon"], about["season"]


def fit(
    values: np.ndarray, horizon: int, season: int | None, *, quick: bool
) -> tuple[Forecaster, Columns]:
    columns = {"time": np.arange(float(len(values))), "y": values}
    wanted = ModelConfig(
        target="y",
        task="forecasting",
        forecast=ForecastConfig(time="time", horizon=horizon, season=season),
        training=TrainingConfig(validation_fraction=HELD_OUT, epochs=20 if quick else None),
        pruning=(),
    )
    if quick:
        wanted = replace(wanted, network=MLPConfig(hidden=(8,)))
    profiles = [ColumnProfile(name=name, type=type_) for name, type_ in TYPES.items()]
    config = resolve(wanted, profiles, len(values), lambda names: {n: columns[n] for n in names})
    model = train(columns, TYPES, config)
    assert isinstance(model, Forecaster)
    return model, columns


def with_theta(forecast: Forecast, theta: float) -> Forecast:
    """The forecast with this dependence of its steps; without a calibration as it is."""
    found = forecast.calibration
    if found is None or found.sums is None:
        return forecast
    return replace(forecast, calibration=replace(found, sums=replace(found.sums, theta=theta)))


def covers(forecast: Forecast, targets: torch.Tensor) -> list[float]:
    """The share of steps, and of sums over the whole horizon, in central intervals."""
    draws = [forecast.by_forecast, Sums.of(forecast.by_forecast, forecast.observation).draws]
    shape = draws[0].shape[1:]
    truths = [targets.view(shape), targets.view(shape).cumsum(-1)]
    found = []
    for one, truth, steps in zip(draws, truths, (slice(None), slice(-1, None)), strict=True):
        low, high = one.quantile(one.new_tensor([0.5 - LEVEL / 2, 0.5 + LEVEL / 2]), 0)
        found.append(float(((low <= truth) & (truth <= high))[:, steps].double().mean()))
    return found


def compare(
    values: np.ndarray, horizon: int, season: int | None, *, quick: bool
) -> tuple[int, list[float]]:
    """The number of origins, and the coverage of each kind."""
    model, columns = fit(values, horizon, season, quick=quick)
    chosen = model.held_out_origins(columns)
    targets = torch.from_numpy(np.concatenate([one.targets(model.horizon) for one in chosen]))
    options = model.resolve(PredictOptions(samples=SAMPLES))
    forecast = model.roll_out(model.history_at(chosen), options)
    calibration = forecast.calibration
    sums = None if calibration is None else calibration.sums
    of_steps, of_sums = covers(forecast, targets)
    if sums is None:
        return len(chosen), [of_steps, of_sums, *[np.nan] * 4]
    own, apart = (covers(with_theta(forecast, theta), targets)[1] for theta in (0.0, -1.0))
    half = sums.half_widths(LEVEL, model.horizon)
    low, high = forecast.sums.within([half])[0]
    truth = targets.view(low.shape).cumsum(-1)
    conformal = float(((low <= truth) & (truth <= high))[:, -1].double().mean())
    return len(chosen), [of_steps, of_sums, own, apart, conformal, sums.theta]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="has the folder forecasts")
    parser.add_argument("--length", type=int, default=240)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    for source in (
        simulated(given.length, given.seeds),
        stored(given.data / "forecasts") if given.data else iter(()),
    ):
        lines, each = [], []
        for name, values, horizon, season in source:
            origins, found = compare(values, horizon, season, quick=given.quick)
            each.append(found)
            shares = ["" if np.isnan(one) else f"{100 * one:.0f} %" for one in found[:-1]]
            lines.append([name, str(origins), *shares, f"{found[-1]:.2f}"])
            print(*lines[-1], flush=True)
        if lines:
            means = [f"{100 * one:.1f} %" for one in np.nanmean(each, 0)[:-1]]
            print(results.markdown(HEADERS, [*lines, ["mean", "", *means, ""]]), flush=True)


if __name__ == "__main__":
    main()
