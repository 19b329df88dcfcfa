"""Standard errors of a version's metrics, from the scores of its held-out rows.

They say how much a metric would vary if other rows were held out; not how much it would vary with
other rows to learn from. A row of weight 2 counts as two rows: n is the sum of the weights.
"""

import math
from collections.abc import Iterable, Mapping

from jaxtyping import Float
from torch import Tensor

from models.config import Json
from models.evaluation.paired import standard_error
from models.evaluation.weighting import Weights, mean, total

Values = Float[Tensor, "rows"]
CLASS_MEANS = ("log_likelihood", "brier", "epistemic_share")
NUMBER_MEANS = ("log_likelihood", "mae", "crps", "epistemic_share")


def class_errors(scores: Mapping[str, Tensor], weights: Weights | None = None) -> Json:
    """Standard errors of the means of `classification_metrics`, under the same names."""
    means = {name: of_mean(scores[name], weights) for name in CLASS_MEANS}
    return {"accuracy": of_share(scores["correct"], weights), **means}


def number_errors(
    scores: Mapping[str, Tensor], levels: Iterable[float], weights: Weights | None = None
) -> Json:
    """Standard errors of the metrics of `regression_metrics`, under the same names.

    Args:
        levels: of the intervals.
    """
    names = [f"{level:g}" for level in levels]
    errors: Json = {name: of_mean(scores[name], weights) for name in NUMBER_MEANS}
    errors["rmse"] = of_root(scores["squared_error"], weights)
    for public, name in (("coverage", "coverage"), ("conformal_coverage", "conformal_coverage")):
        if f"{name}_{names[0]}" in scores:
            errors[public] = {
                level: of_share(scores[f"{name}_{level}"], weights) for level in names
            }
    for public, name in (("interval_width", "width"), ("conformal_width", "conformal_width")):
        if f"{name}_{names[0]}" in scores:
            errors[public] = {level: of_mean(scores[f"{name}_{level}"], weights) for level in names}
    return errors


def of_mean(values: Values, weights: Weights | None = None) -> float | None:
    """s ÷ √n, with s² = Σ w (x − x̄)² ÷ (n − 1); None for one row or infinite values."""
    return _finite(standard_error(values.double(), weights))


def of_root(squares: Values, weights: Weights | None = None) -> float | None:
    """The error of √(mean of the squares): that of the mean ÷ (2 √mean), by the delta method."""
    error, root = of_mean(squares, weights), math.sqrt(mean(squares.double(), weights))
    if error is None or not root:
        return error
    return _finite(error / (2 * root))


def of_share(values: Values, weights: Weights | None = None) -> float | None:
    """√(p̃ (1 − p̃) ÷ n) of a share of n rows, with p̃ = (successes + 2) ÷ (n + 4).

    Unlike that with the share itself it is not 0 if all rows are on one side. Source: Agresti and
    Coull 1998, Approximate is better than "exact" for interval estimation.
    """
    rows = total(values, weights)
    if not rows:
        return None
    share = (rows * mean(values.double(), weights) + 2) / (rows + 4)
    return math.sqrt(share * (1 - share) / rows)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
