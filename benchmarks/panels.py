"""Panels of simulated series whose best possible forecast is known: time, memory and CRPS.

    python -m benchmarks.panels --series 1000 --steps 1000

Each series is y_t = exp(m + s_t + d_t + e_t): a level m, a week's season s of its own phase, an
AR(1) d and noise e. Given all parameters, log y is Gaussian with known moments, so that the CRPS of
the true distribution is the best that a forecast can have. d_t is taken as known at the origin,
which the series tells only up to e: the best is a little out of reach.
"""

import argparse
import resource
import sys
import time
from dataclasses import dataclass

import numpy as np
import torch

from models.config import ForecastConfig, ModelConfig, TrainingConfig
from models.evaluation.metrics import regression_scores
from models.features.columns import ColumnProfile, Columns
from models.forecasting.model import Forecaster
from models.likelihoods.number_mixture import NumberMixture
from models.training.recipe import resolve
from models.training.train import train

TYPES = {"day": "datetime", "sales": "number", "shop": "category"}
_PHI, _SHOCK, _NOISE, _SEASON, _WEEK = 0.9, 0.05, 0.05, 0.2, 7


@dataclass(frozen=True)
class Simulated:
    """A panel, and of its logarithms the part that is known ahead and the AR(1)."""

    columns: Columns
    known: np.ndarray  # [series, steps]: level and season
    state: np.ndarray  # [series, steps]: d


def simulate(series: int, steps: int, seed: int) -> Simulated:
    random = np.random.default_rng(seed)
    t, phase = np.arange(steps), random.uniform(0, 1, size=(series, 1))
    level = np.log(100) + random.normal(size=(series, 1))
    known = level + _SEASON * np.sin(2 * np.pi * (t / _WEEK + phase))
    state = np.empty((series, steps))
    state[:, 0] = _SHOCK / np.sqrt(1 - _PHI**2) * random.normal(size=series)
    for i in range(1, steps):
        state[:, i] = _PHI * state[:, i - 1] + _SHOCK * random.normal(size=series)
    values = np.exp(known + state + _NOISE * random.normal(size=(series, steps)))
    days = (np.datetime64("2015-01-01", "D") + t).astype("datetime64[us]")
    names = np.array([f"shop {i:06d}" for i in range(series)], dtype=object)
    columns = {"day": np.tile(days, series), "sales": values.ravel()}
    return Simulated(columns | {"shop": np.repeat(names, steps)}, known, state)


def best_crps(model: Forecaster, panel: Simulated) -> float:
    """Mean CRPS of the true log y given d at the origin, at the origins of the back-test.

    In logarithms, times y: a lognormal's CRPS is that of its logarithm times the level where the
    deviation is small.
    """
    numbers = {str(key): i for i, key in enumerate(dict.fromkeys(panel.columns["shop"].tolist()))}
    horizon, found = model.horizon, []
    for origin in model.held_out_origins(panel.columns):
        i, h = numbers[str(origin.series.key)], np.arange(1, horizon + 1)
        ahead = slice(origin.first, origin.first + horizon)
        mean = panel.known[i, ahead] + _PHI**h * panel.state[i, origin.first - 1]
        variance = _SHOCK**2 * (1 - _PHI ** (2 * h)) / (1 - _PHI**2) + _NOISE**2
        moments = (torch.from_numpy(part).unsqueeze(0) for part in (mean, variance))
        mixture = NumberMixture.gaussian(next(moments), next(moments))
        truth = torch.from_numpy(np.log(origin.targets(horizon)))
        found.append(regression_scores(mixture, truth)["crps"] * torch.from_numpy(np.exp(mean)))
    return float(torch.cat(found).mean())


def measure(series: int, steps: int, seed: int, epochs: int | None) -> None:
    panel = simulate(series, steps, seed)
    began, worked = time.monotonic(), time.process_time()
    config = ModelConfig(
        target="sales",
        task="forecasting",
        forecast=ForecastConfig(key="shop"),
        training=TrainingConfig(epochs=epochs),
    )
    each = TYPES.items()
    profiles = [ColumnProfile(name=name, type=kind, min=0.0, max=1.0) for name, kind in each]
    config = resolve(config, profiles, series * steps, lambda _: panel.columns)
    resolved = time.monotonic() - began
    model = train(panel.columns, TYPES, config)
    assert isinstance(model, Forecaster)
    seconds, busy = time.monotonic() - began, time.process_time() - worked
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    metrics, best = model.variants_by_prune[0.0].metrics, best_crps(model, panel)
    naive = metrics["baselines"]["seasonal_naive"]["crps"]
    sys.stdout.write(
        f"{series} series × {steps} steps: {seconds:.0f} s ({resolved:.0f} s of them for the "
        f"recipe; {busy:.0f} s of all cores), {memory:.2f} GiB at most; CRPS ÷ best: "
        f"{metrics['crps'] / best:.3f}, seasonal naive ÷ best: {naive / best:.3f}; 90 % intervals "
        f"cover {100 * metrics['coverage']['0.9']:.0f} %\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--series", type=int, default=1_000)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    measure(given.series, given.steps, given.seed, given.epochs)


if __name__ == "__main__":
    main()
