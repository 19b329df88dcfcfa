"""Whether probabilities are as far from ½ as labels say: of rare classes, and of noisy labels.

The slope of a logistic regression of fresh labels on the predicted log odds is 1 if they are (Cox
1958, Biometrika 45); below 1 they are too sure, above 1 too cautious.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from benchmarks.verification.check import Check, Scale
from benchmarks.verification.holes import fit
from models.features.columns import Columns
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel

Points = Float[np.ndarray, "rows features"]
Values = Float[np.ndarray, "rows"]

FEATURES, FRESH = 5, 20_000


def rare(x: Points) -> Values:
    """One row in 50 is positive."""
    return _sigmoid(-5.2 + x @ np.array([1.2, 1.0, -0.8, 0.5, 0.0]))


def noisy(x: Points) -> Values:
    """A fifth of the labels is wrong."""
    return np.where(x[:, 0] + x[:, 1] * x[:, 2] > 0, 0.8, 0.2)


def usual(x: Points) -> Values:
    return _sigmoid(x @ np.array([1.2, 1.0, -0.8, 0.5, 0.0]))


@dataclass(frozen=True)
class Case:
    name: str
    truth: Callable[[Points], Values]
    rows: int


CASES = (
    Case("one positive in 50", rare, 3_000),
    Case("labels wrong in 20 %", noisy, 1_000),
    Case("logistic", usual, 1_000),
)


def checks(scale: Scale) -> list[Check]:
    """The mean slope of each case."""
    cases, seeds = (CASES, range(4)) if scale == "full" else (CASES[1:2], range(1))
    found = []
    for case in cases:
        slopes = [slope(case, fitted(case, seed, scale), seed) for seed in seeds]
        what = f"{case.name}, {case.rows:,} rows: slope of labels on predicted log odds"
        found.append(Check(what, "0.9 to 1.1", float(np.mean(slopes)), 0.9, 1.1))
    return found


def fitted(case: Case, seed: int, scale: Scale) -> TabularModel:
    random = np.random.default_rng(seed)
    x = random.normal(size=(case.rows, FEATURES))
    return fit(_columns(x) | {"y": _labels(case.truth(x), random)}, scale)


def slope(case: Case, model: TabularModel, seed: int) -> float:
    """Of fresh labels, whose own probabilities take the place of draws."""
    random = np.random.default_rng((seed, 1))
    x = random.normal(size=(FRESH, FEATURES))
    answer = model.predict(_columns(x), PredictOptions(samples=200))
    assert model.classes is not None
    predicted = answer.mean[:, model.classes.index("yes")].clip(1e-6, 1 - 1e-6)
    return slope_of(np.log(predicted / (1 - predicted)), case.truth(x))


def slope_of(log_odds: Values, truth: Values) -> float:
    """The maximum-likelihood slope of a logistic regression with an intercept, by Newton steps."""
    design, weights = np.stack([np.ones_like(log_odds), log_odds], 1), np.array([0.0, 1.0])
    for _ in range(25):
        p = _sigmoid(design @ weights)
        hessian = (design * (p * (1 - p))[:, None]).T @ design
        weights = weights + np.linalg.solve(hessian, design.T @ (truth - p))
    return float(weights[1])


def _labels(probability: Values, random: np.random.Generator) -> np.ndarray:
    return np.where(random.random(len(probability)) < probability, "yes", "no").astype(object)


def _columns(x: Points) -> Columns:
    return {f"x{i}": column for i, column in enumerate(x.T)}


def _sigmoid(x: Values) -> Values:
    return np.asarray(1 / (1 + np.exp(-x)))
