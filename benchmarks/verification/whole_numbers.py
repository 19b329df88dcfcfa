"""Do intervals of whole numbers cover what they state, and no more than the numbers force them to?

Counts are negative binomials whose means depend on the features, or are zeros more often than
these say, or numbers of successes out of 8. Measured is the share of 2,000 fresh rows inside an
interval, both ends included. A closed set of whole numbers cannot hold exactly 90 %. So the share
must lie between the level and what the shortest sets under the true distributions hold, give or
take `ALLOWED` and three standard errors of the share.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats

from benchmarks.verification.check import Check, Scale
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

LEVELS = (0.5, 0.9)
TRAINING_ROWS, FRESH_ROWS, DATA_SETS = 1_000, 2_000, {"short": 2, "full": 10}
ALLOWED = 0.02  # of the mean over the data sets: what a model of 1,000 rows does not know
_NUMBERS = np.arange(400)


@dataclass(frozen=True)
class Counts:
    """P(Y = 0, 1, … | features), whose first factor is the mean of the whole."""

    mass: Callable[[np.ndarray], np.ndarray]

    def drawn(self, rows: int, seed: int) -> tuple[Columns, np.ndarray]:
        """Rows, and P(Y = k) of each."""
        random = np.random.default_rng(seed)
        x = random.normal(size=(rows, 3))
        log_factor = 0.5 * np.sin(2 * x[:, 0]) * x[:, 1] + 0.3 * np.abs(x[:, 2])
        mass = self.mass(np.exp(log_factor - 0.3))
        above = mass.cumsum(1) < random.uniform(size=(rows, 1))
        y = above.sum(1).astype(float)
        return dict(zip("abc", x.T, strict=True)) | {"y": y}, mass


def _overdispersed(mean: float, zeros: float = 0.0) -> Counts:
    def mass(factor: np.ndarray) -> np.ndarray:
        mu = (mean * factor)[:, None]
        found = (1 - zeros) * stats.nbinom.pmf(_NUMBERS, 3, 3 / (3 + mu))
        found[:, 0] += zeros
        return found

    return Counts(mass)


def _successes(factor: np.ndarray) -> np.ndarray:
    odds = factor[:, None]
    found: np.ndarray = stats.binom.pmf(_NUMBERS, 8, odds / (1 + odds))
    return found


PROCESSES = {
    "counts of mean 1": _overdispersed(1.0),
    "counts of mean 3": _overdispersed(3.0),
    "counts of mean 10": _overdispersed(10.0),
    "counts of mean 10, 30 % more zeros": _overdispersed(10.0, zeros=0.3),
    "successes out of 8": Counts(_successes),
}


def checks(scale: Scale) -> list[Check]:
    """Closed coverage of both kinds of intervals, against the shortest sets of the truth."""
    torch.set_num_threads(1)
    return [check for name in PROCESSES for check in _of_process(name, DATA_SETS[scale])]


def _of_process(name: str, data_sets: int) -> Iterator[Check]:
    found = [covered(PROCESSES[name], seed) for seed in range(data_sets)]
    chance = 3 / math.sqrt(FRESH_ROWS * data_sets)
    for kind in ("credible", "conformal"):
        for level in LEVELS:
            share, possible, is_open = np.mean([one[kind, level] for one in found], axis=0)
            allowed = ALLOWED + chance * math.sqrt(level * (1 - level))
            least, most = level - allowed, max(level, float(possible)) + allowed
            yield Check(
                f"{name}, {kind} {100 * level:.0f} % intervals: share inside, ends included "
                f"({is_open:.2f} without; the shortest sets of the truth hold {possible:.3f})",
                f"{least:.3f} to {most:.3f}",
                float(share),
                least,
                most,
            )


def covered(process: Counts, seed: int) -> dict[tuple[str, float], tuple[float, float, float]]:
    """By kind and level: closed coverage, what the shortest true sets cover, open coverage."""
    columns, _ = process.drawn(TRAINING_ROWS, seed)
    types = dict.fromkeys(columns, "number")
    profiles = [ColumnProfile(name=one, type="number") for one in columns]
    config = ModelConfig(
        target="y",
        likelihood="count",
        network=MLPConfig(hidden=(30, 30)),
        training=TrainingConfig(epochs=80, batch_size=64, learning_rate=0.01),
    )
    model = train(columns, types, resolve(config, profiles, TRAINING_ROWS))
    fresh, mass = process.drawn(FRESH_ROWS, 1_000 + seed)
    y = fresh.pop("y")
    answer = model.predict_rows(model.encode(fresh), PredictOptions(intervals=LEVELS))
    possible = {level: np.mean([_shortest(row, level) for row in mass[:300]]) for level in LEVELS}
    return {
        (one.kind, one.level): (
            ((one.lower <= y) & (y <= one.upper)).mean(),
            possible[one.level],
            ((one.lower < y) & (y < one.upper)).mean(),
        )
        for one in answer.intervals
    }


def _shortest(mass: np.ndarray, level: float) -> float:
    """The probability of the shortest set of successive numbers that holds a level."""
    before = np.concatenate([[0.0], mass.cumsum()])
    first = np.flatnonzero(before[-1] - before[:-1] >= level)
    last = np.searchsorted(before, before[first] + level - 1e-12) - 1
    last = last.clip(max=len(mass) - 1)
    held = before[last + 1] - before[first]
    return float(held[np.lexsort((-held, last - first))[0]])
