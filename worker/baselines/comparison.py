"""How a model compares with simple methods, row by row, and notes on those it does not beat."""

import math
from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from models.evaluation.baseline import Baseline, BaselineKind
from models.evaluation.weighting import mean, paired

NAMES: dict[BaselineKind, str] = {
    "constant": "the same prediction for every row",
    "linear": "a linear model",
    "boosted_trees": "boosted trees",
}


def with_advantage(
    baseline: Baseline,
    score: str,
    theirs: Float[Tensor, "rows"],
    ours: Float[Tensor, "rows"],
    weights: Float[Tensor, "rows"] | None = None,
) -> Baseline:
    """The baseline with the model's advantage; the arguments are those of `note_on`."""
    sign = -1 if score == "crps" else 1
    pair = paired(sign * ours, sign * theirs, weights)
    error = pair.standard_error
    return replace(
        baseline,
        advantage=pair.difference,
        advantage_error=error if math.isfinite(error) else None,
    )


def note_on(
    kind: BaselineKind,
    score: str,
    theirs: Float[Tensor, "rows"],
    ours: Float[Tensor, "rows"],
    weights: Float[Tensor, "rows"] | None = None,
) -> str | None:
    """A note if the model does not beat a method, by a proper score; else None.

    Args:
        score: `crps`, lower is better, or `log_likelihood`, higher is better.
        theirs, ours: the scores of the same held-out rows.
        weights: of these rows; None if each is 1.
    """
    sign = -1 if score == "crps" else 1
    pair = paired(sign * theirs, sign * ours, weights)
    if pair.difference < 0:
        return None
    label = "CRPS" if score == "crps" else "log likelihood"
    values = f"{label} {mean(theirs, weights):.4g} and {mean(ours, weights):.4g}"
    by = f"difference per row {pair.difference:.2g}, standard error {pair.standard_error:.2g}"
    if pair.is_certain:
        return f"{NAMES[kind]} predicted the held-out rows better than this model: {values} ({by})"
    return (
        f"{NAMES[kind]} predicted the held-out rows as well as this model, no difference to be "
        f"seen: {values} ({by if len(ours) > 1 else 'one row'})"
    )
