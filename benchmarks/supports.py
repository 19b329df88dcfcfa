"""Simulated counts, intermittent demand, shares and censored values, whose distribution is known.

    python -m benchmarks.supports --seeds 3

Of each process a network learns 240 steps with the recipe and forecasts the next 40, ten at a time.
The CRPS is divided by that of the true distribution given the past, of which no forecast can have a
lower one; a share of draws and medians outside the support, or between whole numbers, is shown too.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks import results
from models.config import ForecastConfig, ModelConfig, TrainingConfig
from models.evaluation.crps import sample_crps
from models.features.columns import ColumnProfile, Columns
from models.forecasting.model import Forecaster
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

LEARNED, ORIGINS, HORIZON, DRAWS = 240, 4, 10, 2_000
STEPS = LEARNED + ORIGINS * HORIZON
TYPES = {"step": "number", "y": "number"}
_PHI = 0.8  # of the logit of a share

Random = np.random.Generator
# Values ahead, [draws, steps], given the last value and how many of both.
Ahead = Callable[[Random, float, int, int], np.ndarray]


@dataclass(frozen=True)
class Process:
    """A process and its support."""

    ahead: Ahead
    lower: float = 0.0
    upper: float = np.inf
    integer: bool = True

    def simulate(self, random: Random) -> np.ndarray:
        return self.ahead(random, 0.5, 1, STEPS)[0]

    def is_possible(self, values: np.ndarray) -> np.ndarray:
        inside = (values >= self.lower) & (values <= self.upper)
        return inside & (values == values.round()) if self.integer else inside


def _shares(random: Random, last: float, draws: int, steps: int) -> np.ndarray:
    u, found = np.full(draws, np.log(last / (1 - last))), []
    for _ in range(steps):
        u = _PHI * u + random.normal(0, 0.8, draws)
        found.append(1 / (1 + np.exp(-u)))
    return np.stack(found, 1)


PROCESSES = {
    "Poisson, mean 3": Process(lambda r, _, n, h: r.poisson(3, (n, h))),
    "negative binomial, mean 4": Process(lambda r, _, n, h: r.negative_binomial(1.5, 0.27, (n, h))),
    "intermittent, a quarter": Process(
        lambda r, _, n, h: r.poisson(5, (n, h)) * (r.random((n, h)) < 0.25)
    ),
    "rare, one in ten": Process(lambda r, _, n, h: r.poisson(2, (n, h)) * (r.random((n, h)) < 0.1)),
    "share, AR(1)": Process(_shares, upper=1.0, integer=False),
    "positive, a third at 0": Process(
        lambda r, _, n, h: np.maximum(0, r.normal(0.4, 1, (n, h))), integer=False
    ),
}


def fit(columns: Columns, seed: int) -> Forecaster:
    """Train with the recipe."""
    profiles = [ColumnProfile(name=name, type=type_) for name, type_ in TYPES.items()]
    wanted = ModelConfig(
        target="y",
        task="forecasting",
        forecast=ForecastConfig(time="step", horizon=HORIZON),
        training=TrainingConfig(seed=seed),
        pruning=(),
    )
    config = resolve(wanted, profiles, LEARNED, lambda names: {n: columns[n] for n in names})
    model = train(columns, TYPES, config)
    assert isinstance(model, Forecaster)
    return model


def run(process: Process, seed: int) -> dict[str, float | str]:
    """Scores of the forecasts from all origins."""
    random = np.random.default_rng(seed)
    values = process.simulate(random).astype(float)
    columns = {"step": np.arange(STEPS, dtype=float), "y": values}
    model = fit({name: column[:LEARNED] for name, column in columns.items()}, seed)
    own, best, inside, possible = [], [], [], []
    for first in range(LEARNED, STEPS, HORIZON):
        past = {name: column[:first] for name, column in columns.items()}
        options = PredictOptions(samples=100, intervals=(0.9,), return_draws=True)
        answer = model.predict(past, options)
        truth = torch.from_numpy(values[first : first + HORIZON])
        ideal = process.ahead(random, values[first - 1], DRAWS, HORIZON).astype(float)
        assert answer.draws is not None
        own.append(sample_crps(torch.from_numpy(answer.draws[:DRAWS]).double(), truth))
        best.append(sample_crps(torch.from_numpy(ideal), truth))
        shown = answer.intervals[0]
        inside.append((shown.lower <= truth.numpy()) & (truth.numpy() <= shown.upper))
        possible.append(process.is_possible(np.concatenate([answer.draws, [shown.lower]])))
    return {
        "scale": str(model.forecast.transform),
        "ratio": float(torch.cat(own).mean() / torch.cat(best).mean()),
        "covers": float(np.mean(inside)),
        "outside": 1 - float(np.mean(np.concatenate(possible))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    lines = []
    for name, process in PROCESSES.items():
        found = [run(process, seed) for seed in range(arguments.seeds)]
        scales = ", ".join(sorted({str(one["scale"]) for one in found}))
        mean = {
            k: np.mean([float(one[k]) for one in found]) for k in ("ratio", "covers", "outside")
        }
        shares = [f"{100 * mean[k]:.0f} %" for k in ("covers", "outside")]
        lines.append([name, scales, f"{mean['ratio']:.2f}", *shares])
        print(lines[-1], flush=True)
    headers = ["process", "scale", "CRPS ÷ best", "90 % intervals cover", "outside the support"]
    print(results.markdown(headers, lines))


if __name__ == "__main__":
    main()
