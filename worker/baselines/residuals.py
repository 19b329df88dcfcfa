"""Predictive distributions of numbers: a prediction plus residuals, and their scores."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from models.config import Json
from models.evaluation.metrics import COVERAGE_LEVELS
from models.evaluation.weighting import of_mean, of_root, of_share
from models.features import weighted

MOST_GROUPS = 10
GROUP_ROWS = 100  # at least: the ends of a 90 % interval are then the 5th values from both ends


@dataclass(frozen=True)
class Residuals:
    """Y = prediction + R, where R is a residual of similar predictions, as likely as its weight.

    Args:
        edges: the upper ends of all groups of predictions but the last, in increasing order.
        groups: the residuals of each group, sorted.
        weights: of the residuals of each group; () if each is 1.
    """

    edges: Float[np.ndarray, "edges"]
    groups: tuple[Float[np.ndarray, "residuals"], ...]
    weights: tuple[Float[np.ndarray, "residuals"], ...] = ()

    @classmethod
    def fit(
        cls,
        prediction: Float[np.ndarray, "rows"],
        truth: Float[np.ndarray, "rows"],
        groups: int,
        weights: Float[np.ndarray, "rows"] | None = None,
    ) -> "Residuals":
        """Group the residuals of rows by their prediction, into at most this many groups.

        Equal predictions stay together, so that groups may differ in size.
        """
        edges = _edges(prediction, groups, weights)
        group, residuals = np.searchsorted(edges, prediction), truth - prediction
        places = [np.flatnonzero(group == i) for i in range(len(edges) + 1)]
        ordered = [rows[np.argsort(residuals[rows], kind="stable")] for rows in places]
        each = () if weights is None else tuple(weights[rows] for rows in ordered)
        return cls(edges, tuple(residuals[rows] for rows in ordered), each)

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
            weights = self.weights[i] if self.weights else None
            crps[rows] = crps_of_sample(residuals, error[rows], weights)
            lower[:, rows] = weighted.quantile(residuals, tails.tolist(), weights)[:, None]
            upper[:, rows] = weighted.quantile(residuals, (1 - tails).tolist(), weights)[:, None]
        by_level = {
            f"{name}_{level:g}": values[i].astype(np.float64)
            for name, values in (
                ("coverage", (lower <= error) & (error <= upper)),
                ("width", upper - lower),
            )
            for i, level in enumerate(COVERAGE_LEVELS)
        }
        return {"squared_error": error**2, "mae": np.abs(error), "crps": crps, **by_level}


def _edges(
    prediction: Float[np.ndarray, "rows"], groups: int, weights: Float[np.ndarray, "rows"] | None
) -> Float[np.ndarray, "edges"]:
    """Quantiles between groups that have at least half of an equal share each."""
    total = weighted.total(prediction, weights)
    least, edges, start = total / (2 * groups), list[float](), 0.0
    for share in np.arange(1, groups) / groups:
        edge = float(weighted.quantile(prediction, [share], weights)[0])
        below = prediction <= edge
        end = weighted.total(prediction[below], weighted.part(weights, below))
        if end - start >= least and total - end >= least:
            edges.append(edge)
            start = end
    return np.array(edges)


def crps_of_sample(
    sample: Float[np.ndarray, "sample"],
    truth: Float[np.ndarray, "rows"],
    weights: Float[np.ndarray, "sample"] | None = None,
) -> Float[np.ndarray, "rows"]:
    """E|R − y| − ½ E|R − R′| of each y, for R and R′ from the sorted sample, by their weights.

    Source: Gneiting and Raftery 2007, equation 21.
    """
    each = np.ones(len(sample)) if weights is None else weights
    counts = np.concatenate([[0.0], np.cumsum(each)])
    total = np.concatenate([[0.0], np.cumsum(each * sample)])
    size, below = counts[-1], np.searchsorted(sample, truth)
    away = truth * (2 * counts[below] - size) - 2 * total[below] + total[-1]
    between = float((each * (counts[:-1] + counts[1:] - size)) @ sample) / size**2
    return away / size - between


def groups_for(rows: float) -> int:
    """How many groups of residuals this many rows allow."""
    return max(1, min(MOST_GROUPS, int(rows // GROUP_ROWS)))


def number_metrics(
    scores: dict[str, Float[np.ndarray, "rows"]],
    weights: Float[np.ndarray, "rows"] | None = None,
) -> Json:
    """Means of the scores under the names that a model's metrics have."""
    mean = {name: weighted.mean(values, weights) for name, values in scores.items()}
    by_level = {
        public: {f"{level:g}": mean[f"{name}_{level:g}"] for level in COVERAGE_LEVELS}
        for public, name in (("coverage", "coverage"), ("interval_width", "width"))
    }
    point = {"rmse": mean["squared_error"] ** 0.5, "mae": mean["mae"], "crps": mean["crps"]}
    counted = {} if weights is None else {"weight": float(weights.sum())}
    errors = {"standard_errors": _errors(scores, weights)}
    return {"rows": len(scores["crps"]), **counted, **point, **by_level, **errors}


def _errors(
    scores: dict[str, Float[np.ndarray, "rows"]], weights: Float[np.ndarray, "rows"] | None
) -> Json:
    tensors = {name: torch.from_numpy(values) for name, values in scores.items()}
    own = None if weights is None else torch.from_numpy(weights)
    return {
        "rmse": of_root(tensors["squared_error"], own),
        "mae": of_mean(tensors["mae"], own),
        "crps": of_mean(tensors["crps"], own),
        "coverage": {
            f"{level:g}": of_share(tensors[f"coverage_{level:g}"], own) for level in COVERAGE_LEVELS
        },
    }
