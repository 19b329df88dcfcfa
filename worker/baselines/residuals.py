"""Predictive distributions of numbers: a prediction plus residuals, and their scores."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from models.config import Json
from models.evaluation.metrics import COVERAGE_LEVELS

MOST_GROUPS = 10
GROUP_ROWS = 100  # at least: the ends of a 90 % interval are then the 5th values from both ends


@dataclass(frozen=True)
class Residuals:
    """Y = prediction + R, where R is uniform over residuals of similar predictions.

    Args:
        edges: the upper ends of all groups of predictions but the last, in increasing order.
        groups: the residuals of each group, sorted.
    """

    edges: Float[np.ndarray, "edges"]
    groups: tuple[Float[np.ndarray, "residuals"], ...]

    @classmethod
    def fit(
        cls, prediction: Float[np.ndarray, "rows"], truth: Float[np.ndarray, "rows"], groups: int
    ) -> "Residuals":
        """Group the residuals of rows by their prediction, into at most this many groups.

        Equal predictions stay together, so that groups may differ in size.
        """
        edges = _edges(np.sort(prediction), groups)
        group, residuals = np.searchsorted(edges, prediction), truth - prediction
        return cls(edges, tuple(np.sort(residuals[group == i]) for i in range(len(edges) + 1)))

    def scores(
        self, prediction: Float[np.ndarray, "rows"], truth: Float[np.ndarray, "rows"]
    ) -> dict[str, Float[np.ndarray, "rows"]]:
        """Per row: squared error and absolute error of the prediction, CRPS, coverage and width."""
        error = truth - prediction
        group = np.searchsorted(self.edges, prediction)
        crps = np.empty(len(error))
        tails = np.array([0.5 * (1 - level) for level in COVERAGE_LEVELS])
        lower, upper = (np.empty((len(tails), len(error))) for _ in range(2))
        for i, residuals in enumerate(self.groups):
            rows = group == i
            crps[rows] = crps_of_sample(residuals, error[rows])
            lower[:, rows] = np.quantile(residuals, tails)[:, None]
            upper[:, rows] = np.quantile(residuals, 1 - tails)[:, None]
        by_level = {
            f"{name}_{level:g}": values[i].astype(np.float64)
            for name, values in (
                ("coverage", (lower <= error) & (error <= upper)),
                ("width", upper - lower),
            )
            for i, level in enumerate(COVERAGE_LEVELS)
        }
        return {"squared_error": error**2, "mae": np.abs(error), "crps": crps, **by_level}


def _edges(ordered: Float[np.ndarray, "rows"], groups: int) -> Float[np.ndarray, "edges"]:
    """Quantiles between groups that have at least half of an equal share each."""
    least, edges, start = len(ordered) / (2 * groups), list[float](), 0
    for share in np.arange(1, groups) / groups:
        edge = float(np.quantile(ordered, share))
        end = int(np.searchsorted(ordered, edge, side="right"))
        if end - start >= least and len(ordered) - end >= least:
            edges.append(edge)
            start = end
    return np.array(edges)


def crps_of_sample(
    sample: Float[np.ndarray, "sample"], truth: Float[np.ndarray, "rows"]
) -> Float[np.ndarray, "rows"]:
    """E|R − y| − ½ E|R − R′| of each y, for R and R′ uniform over the sorted sample.

    Source: Gneiting and Raftery 2007, equation 21.
    """
    size, total = len(sample), np.concatenate([[0.0], np.cumsum(sample)])
    below = np.searchsorted(sample, truth)
    away = truth * (2 * below - size) - 2 * total[below] + total[-1]
    between = float((2 * np.arange(1, size + 1) - size - 1) @ sample) / size**2
    return away / size - between


def groups_for(rows: int) -> int:
    """How many groups of residuals this many rows allow."""
    return max(1, min(MOST_GROUPS, rows // GROUP_ROWS))


def number_metrics(scores: dict[str, Float[np.ndarray, "rows"]]) -> Json:
    """Means of the scores under the names that a model's metrics have."""
    mean = {name: float(values.mean()) for name, values in scores.items()}
    by_level = {
        public: {f"{level:g}": mean[f"{name}_{level:g}"] for level in COVERAGE_LEVELS}
        for public, name in (("coverage", "coverage"), ("interval_width", "width"))
    }
    point = {"rmse": mean["squared_error"] ** 0.5, "mae": mean["mae"], "crps": mean["crps"]}
    return {"rows": len(scores["crps"]), **point, **by_level}
