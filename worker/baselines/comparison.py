"""Notes on the simple methods that a model does not beat."""

from jaxtyping import Float
from torch import Tensor

from models.evaluation.baseline import BaselineKind
from models.evaluation.paired import paired
from models.evaluation.weighting import mean

NAMES: dict[BaselineKind, str] = {
    "constant": "the same prediction for every row",
    "linear": "a linear model",
    "boosted_trees": "boosted trees",
}


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
    by = f"difference per row {pair.difference:.2g}"
    if pair.is_clear:
        return (
            f"{NAMES[kind]} predicted the held-out rows better than this model: {values} "
            f"({by}, standard error {pair.standard_error:.2g})"
        )
    error = (
        f"within its standard error of {pair.standard_error:.2g}" if len(ours) > 1 else "one row"
    )
    return (
        f"{NAMES[kind]} predicted the held-out rows as well as this model: {values} ({by}, {error})"
    )
