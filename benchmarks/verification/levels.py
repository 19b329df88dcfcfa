"""Whether a prediction for a level that no training row had is as uncertain as levels differ.

Levels have effects u ~ N(0, τ²), on the target itself or on its slope in x. Those of new levels are
as far from those of known ones as these are from each other.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from benchmarks.verification.check import Check, Scale
from benchmarks.verification.holes import fit
from models.features.columns import Columns
from models.prediction.options import PredictOptions

Values = Float[np.ndarray, "rows"]

LEVEL = 0.9
TAU, NOISE = 1.0, 0.3
ROWS, NEW_LEVELS, PER_LEVEL = 800, 200, 5  # learned rows; new levels, and fresh rows of each


@dataclass(frozen=True)
class Case:
    """How levels matter.

    Args:
        slopes: whether the effect is on the slope in x, not on the target itself.
    """

    levels: int
    slopes: bool = False

    @property
    def about(self) -> str:
        return f"{self.levels} levels{', slopes differ' if self.slopes else ''}"


CASES = tuple(Case(levels, slopes) for slopes in (False, True) for levels in (8, 20, 60))


@dataclass(frozen=True)
class Drawn:
    """Rows to learn from; fresh rows of known and of new levels, with and without their values."""

    learned: Columns
    known: Columns
    new: Columns


def draw(case: Case, seed: int) -> Drawn:
    random = np.random.default_rng(seed)
    effects = TAU * random.normal(size=case.levels + NEW_LEVELS)

    def rows(of: np.ndarray) -> Columns:
        x = random.uniform(-2, 2, len(of))
        moved = effects[of] * (x if case.slopes else 1)
        y = np.sin(1.5 * x) + moved + NOISE * random.normal(size=len(of))
        return {"x": x, "level": np.array([f"l{i}" for i in of], object), "y": y}

    fresh = np.arange(case.levels, case.levels + NEW_LEVELS).repeat(PER_LEVEL)
    learned, known = (random.integers(0, case.levels, n) for n in (ROWS, len(fresh)))
    return Drawn(rows(learned), rows(known), rows(fresh))


def checks(scale: Scale) -> list[Check]:
    """Cover of fresh values of new and known levels, and the epistemic part of the new ones."""
    cases, seeds = (CASES, range(3)) if scale == "full" else (CASES[1::3], range(1))
    return [check for case in cases for check in _covers(case, seeds, scale)]


def _covers(case: Case, seeds: range, scale: Scale) -> Iterator[Check]:
    covers, shares = [], []
    for seed in seeds:
        drawn = draw(case, seed)
        model = fit(drawn.learned, scale)
        for rows in (drawn.new, drawn.known):
            answer = model.predict(rows, PredictOptions(samples=200, intervals=(LEVEL,)))
            interval = answer.intervals[0]  # the credible one
            covers.append(np.mean((interval.lower <= rows["y"]) & (rows["y"] <= interval.upper)))
            truth = TAU**2 * np.mean(rows["x"] ** 2 if case.slopes else 1)
            shares.append(answer.variance["epistemic"].mean() / truth)
    for place, name in enumerate(("new", "known")):
        yield Check(
            f"{case.about}: fresh values of {name} levels within {LEVEL:.0%} intervals "
            f"(epistemic variance ÷ that of effects {np.mean(shares[place::2]):.3f})",
            "0.85 to 0.95",
            float(np.mean(covers[place::2])),
            0.85,
            0.95,
        )
