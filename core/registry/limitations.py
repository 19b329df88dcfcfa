"""Limitations of a version, as sentences for its model card."""

import math
from collections.abc import Iterator

from core.database.schema import Json

_SURE = 1.96  # standard errors on each side of a share, for 95 %
_FEW_ROWS = 20  # of a class: with fewer, its accuracy is uncertain by more than 20 points

_APPROXIMATIONS = {
    "bbb": "the epistemic variance comes out too small between clusters of rows: the posterior is "
    "mean-field, so its weights are independent of each other",
    "map": "a point estimate: the epistemic variance is 0 everywhere",
    "mle": "a point estimate: the epistemic variance is 0 everywhere",
    "ensemble": "the epistemic variance is that of a few members, and varies with them",
    "mc_dropout": "the epistemic variance follows from the dropout rate, which was chosen, not "
    "learned",
    "swag": "the posterior is a Gaussian about one optimum",
    "laplace": "the posterior is a Gaussian about one optimum, as wide as the curvature there "
    "says; it knows nothing of other optima",
    "sgld": "chains with a step size that is not 0 only come close to the posterior",
    "csgld": "chains with a step size that is not 0 only come close to the posterior",
}
_SPLITS = {
    "random": "rows were held out at random: the scores hold for rows that come as these did, not "
    "for later ones or for groups that were not seen",
    "last": "the last rows as they are stored were held out: the scores hold for what follows",
    "by": "whole groups were held out: the scores hold for new groups like these",
    "time": "the latest rows were held out: the scores hold for a future like that one",
}


def find_limits(description: Json, rows: Json) -> list[str]:
    """The sentences. What the training did is in the notes of the version.

    Args:
        description: the content of `model.json`.
        rows: `models.card.RowProfile` as JSON.
    """
    return [
        *_of_method(description),
        *_of_split(description),
        *_of_held_out(description["metrics"]),
        *_of_rows(rows),
    ]


def _of_method(description: Json) -> Iterator[str]:
    kind, training = description["method"]["kind"], description["training"]
    if kind in _APPROXIMATIONS:
        yield _APPROXIMATIONS[kind]
    if description["method"].get("hessian") == "diagonal":
        yield (
            "the curvature is a diagonal: weights are independent of each other, and the epistemic "
            "variance comes out too small where they depend on each other"
        )
    pruned = [variant for variant in description["variants"] if variant["prune"] > 0]
    if pruned and training.get("fine_tune_epochs"):
        yield (
            f"pruned variants were fine-tuned (epochs each: {training['fine_tune_epochs']}): they "
            "differ from the full posterior by more than the removed weights"
        )


def _of_split(description: Json) -> Iterator[str]:
    split = description["training"]["split"]
    yield _SPLITS[split if isinstance(split, str) else next(iter(split))]


def _of_held_out(metrics: Json) -> Iterator[str]:
    """The held-out accuracy, or coverage at 90 %, with its confidence interval."""
    rows = metrics.get("rows")
    share = metrics.get("accuracy", metrics.get("coverage", {}).get("0.9"))
    if rows is None or share is None:
        return
    what = "accuracy" if "accuracy" in metrics else "coverage of the 90 % interval"
    overlap = "independent_errors" in metrics  # the steps of forecasts do
    independent: float = metrics["independent_errors"] if overlap else rows
    low, high = wilson_interval(share, independent)
    worth = "" if independent == rows else f", which count as {independent:.0f} independent ones"
    count = metrics.get("origins")  # of a forecaster
    of_series = f"{rows} steps of {count} forecasts of the held-out end"
    held_out = of_series if count else f"{rows} held-out rows"
    yield (
        f"scores are of {held_out}{worth}: the {what} is {100 * share:.1f} % of these, "
        f"and between {100 * low:.1f} and {100 * high:.1f} % of all rows like them (95 % interval)"
    )
    if "origins" in metrics and "independent_errors" not in metrics:  # of older versions
        yield "forecasts from neighbouring origins overlap: the scores are less certain than that"


def wilson_interval(share: float, rows: float) -> tuple[float, float]:
    """Wilson's 95 % confidence interval of a share p̂ of n rows.

    (p̂ + z²/2n ± z √(p̂ (1 − p̂)/n + z²/4n²)) / (1 + z²/n) with z = 1.96. Unlike
    p̂ ± z √(p̂ (1 − p̂)/n) it is wider than 0 where p̂ is 0 or 1. Source: Wilson 1927, Probable
    inference, the law of succession, and statistical inference, JASA 22.
    """
    z_squared = _SURE**2 / rows
    middle = share + z_squared / 2
    reach = math.sqrt(z_squared * (share * (1 - share) + z_squared / 4))
    low, high = ((middle + side * reach) / (1 + z_squared) for side in (-1, 1))
    return max(0.0, low), min(1.0, high)


def _of_rows(rows: Json) -> Iterator[str]:
    columns = rows["columns"]
    if any(column["role"] == "feature" and column["min"] is not None for column in columns):
        yield (
            "beyond the range of each feature in the table of columns, predictions are "
            "extrapolations"
        )
    target = next(column for column in columns if column["role"] == "target")
    counts = reversed(target["levels"] or ())  # the rarest first
    if rare := [f"{name} ({n})" for name, n in counts if n < _FEW_ROWS]:
        yield f"classes with fewer than {_FEW_ROWS} rows to learn from: {_few(rare)}"
    if gaps := [c["name"] for c in columns if c["role"] == "feature" and c["missing"]]:
        yield f"missing in some rows, which the model treats as a value of their own: {_few(gaps)}"


def _few(names: list[str], most: int = 20) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
