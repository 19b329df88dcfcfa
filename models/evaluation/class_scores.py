"""Scores by class, which mean something for rare classes: accuracy hides what happens to them.

Of two classes the scores are those of the rarer one of the scored rows (`positive`), of more the
plain means over the classes that these rows have. Rows count as their weights. The definitions are
those of scikit-learn: average precision is Σ (Rₙ − Rₙ₋₁) Pₙ over the thresholds, balanced accuracy
the mean recall, AUROC that of one class against all others.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from models.config import Json
from models.evaluation.paired import standard_error
from models.evaluation.standard_errors import of_share
from models.evaluation.weighting import Weights, mean, split_weights

_RANKED = ("average_precision", "auroc")
MOST_CLASSES = 50  # with scores of their own: more fill pages, not heads
WANTED_RECALL = 0.9  # at one of the thresholds
Placed = tuple[Tensor, Tensor | None]  # values of some rows, and the weights of these
TARGET, LABEL, PROBABILITIES = "target", "label", "probabilities"  # entries of per-row scores


def class_row_scores(
    probabilities: Float[Tensor, "rows classes"], targets: Int[Tensor, "rows"]
) -> dict[str, Tensor]:
    """What `class_metrics` reads of each row. More than `MOST_CLASSES` have no probabilities."""
    own = {TARGET: targets, LABEL: probabilities.argmax(-1)}
    if probabilities.shape[-1] > MOST_CLASSES:
        return own
    return own | {PROBABILITIES: probabilities}


def class_metrics(scores: Mapping[str, Tensor], classes: Sequence[object]) -> tuple[Json, Json]:
    """The metrics, and those of their standard errors that are known; both empty without entries.

    `confusion.counts` has a row per true class and a column per predicted one, in the order of
    `confusion.classes`. A score of a class without rows is None.
    """
    if TARGET not in scores:
        return {}, {}
    own = {name: values.cpu() for name, values in scores.items()}
    found, weights = split_weights(own)
    targets, labels = found[TARGET], found[LABEL]
    counts = _confusion(targets, labels, len(classes), weights)
    recalls = [
        (mean(hits, w), of_share(hits, w))
        for hits, w in (_hits(targets, labels, k, weights) for k in range(len(classes)))
        if len(hits)
    ]
    metrics: Json = {"balanced_accuracy": sum(r for r, _ in recalls) / len(recalls)}
    squares = sum((error or 0.0) ** 2 for _, error in recalls)
    errors: Json = {"balanced_accuracy": math.sqrt(squares) / len(recalls)}
    if PROBABILITIES not in found:
        return metrics, errors
    each = [
        _of_class(found[PROBABILITIES][:, k].double(), targets == k, counts, k, weights)
        for k in range(len(classes))
    ]
    by_class = [{"class": name, **one} for name, one in zip(classes, each, strict=True)]
    confusion = {"classes": list(classes), "counts": _plain(counts, weights)}
    metrics |= {"by_class": by_class, "confusion": confusion}
    if len(classes) != 2:
        return metrics | {name: _mean_of(each, name) for name in _RANKED}, errors
    positive = 0 if each[0]["rows"] < each[1]["rows"] else 1
    p, truth = found[PROBABILITIES][:, positive].double(), targets == positive
    metrics |= {name: each[positive][name] for name in _RANKED}
    metrics |= {"positive": classes[positive], "thresholds": thresholds(p, truth, weights)}
    return metrics, errors | {"auroc": auroc_error(p, truth, weights)}


def average_precision(
    scores: Float[Tensor, "rows"], positive: Bool[Tensor, "rows"], weights: Weights | None = None
) -> float | None:
    """Σ (Rₙ − Rₙ₋₁) Pₙ, with equal scores as one threshold; None without a positive row."""
    if not positive.any():
        return None
    _, recall, precision, _ = threshold_curve(scores, positive, weights)
    steps = torch.diff(recall, prepend=recall.new_zeros(1))
    return float((steps * precision).sum())


def auroc_of(
    scores: Float[Tensor, "rows"], positive: Bool[Tensor, "rows"], weights: Weights | None = None
) -> float | None:
    """P(a positive row's score is above a negative one's) + ½ P(equal); None without both."""
    sides = _placements(scores, positive, weights)
    return None if sides is None else mean(*sides[0])


def auroc_error(
    scores: Float[Tensor, "rows"], positive: Bool[Tensor, "rows"], weights: Weights | None = None
) -> float | None:
    """√(s₁₀² ÷ n₁ + s₀₁² ÷ n₀) of the placements of both sides (DeLong et al. 1988)."""
    sides = _placements(scores, positive, weights)
    if sides is None:
        return None
    error = math.hypot(*(standard_error(placed, own) for placed, own in sides))
    return error if math.isfinite(error) else None


def thresholds(
    scores: Float[Tensor, "rows"], positive: Bool[Tensor, "rows"], weights: Weights | None = None
) -> list[Json]:
    """Recall, precision and share of the rows that have at least some probability: a half, and
    the largest one that reaches `WANTED_RECALL`; empty without a positive row."""
    if not positive.any():
        return []
    at, recall, precision, share = threshold_curve(scores, positive, weights)
    wanted = int(torch.nonzero(recall >= WANTED_RECALL - 1e-12)[0])
    above = int((at >= 0.5).sum()) - 1
    half: Json = {"threshold": 0.5, "recall": 0.0, "precision": None, "share": 0.0}
    if above >= 0:
        half |= _point(above, recall, precision, share)
    reached = {"threshold": float(at[wanted])} | _point(wanted, recall, precision, share)
    return [half, reached]


def _point(i: int, *curves: Float64[Tensor, "thresholds"]) -> Json:
    names = ("recall", "precision", "share")
    return {name: float(curve[i]) for name, curve in zip(names, curves, strict=True)}


def threshold_curve(
    scores: Float[Tensor, "rows"], positive: Bool[Tensor, "rows"], weights: Weights | None
) -> tuple[Float64[Tensor, "thresholds"], ...]:
    """Distinct scores from high to low; recall, precision and share of the rows at or above."""
    ordered, order = scores.double().sort(descending=True)
    own = torch.ones_like(ordered) if weights is None else weights.double()[order]
    hits, rows = (own * positive[order]).cumsum(0), own.cumsum(0)
    ends = torch.cat([ordered[1:] != ordered[:-1], torch.tensor([True])])
    ordered, hits, rows = ordered[ends], hits[ends], rows[ends]
    return ordered, hits / hits[-1], hits / rows, rows / rows[-1]


def _placements(
    scores: Float[Tensor, "rows"], positive: Bool[Tensor, "rows"], weights: Weights | None
) -> tuple[Placed, Placed] | None:
    """Per positive row the share of negative ones below it, and per negative row the share of
    positive ones above it, equal ones by half; each with its weights."""
    if not positive.any() or positive.all():
        return None
    high, low = scores[positive].double(), scores[~positive].double()
    own = None if weights is None else weights[positive].double()
    other = None if weights is None else weights[~positive].double()
    return (_share_below(high, low, other), own), (1 - _share_below(low, high, own), other)


def _share_below(
    values: Float64[Tensor, "some"],
    others: Float64[Tensor, "others"],
    weights: Float64[Tensor, "others"] | None,
) -> Float64[Tensor, "some"]:
    ordered, order = others.sort()
    own = torch.ones_like(ordered) if weights is None else weights[order]
    sums = torch.nn.functional.pad(own.cumsum(0), (1, 0))
    below = torch.searchsorted(ordered, values)
    not_above = torch.searchsorted(ordered, values, right=True)
    return (sums[below] + sums[not_above]) / (2 * sums[-1])


def _of_class(
    scores: Float[Tensor, "rows"],
    positive: Bool[Tensor, "rows"],
    counts: Float64[Tensor, "classes classes"],
    k: int,
    weights: Weights | None,
) -> Json:
    rows, predicted, hits = (float(v) for v in (counts[k].sum(), counts[:, k].sum(), counts[k, k]))
    return {
        "rows": int(positive.sum()),
        "recall": hits / rows if rows else None,
        "precision": hits / predicted if predicted else None,
        "average_precision": average_precision(scores, positive, weights),
        "auroc": auroc_of(scores, positive, weights),
    }


def _hits(targets: Tensor, labels: Tensor, k: int, weights: Weights | None) -> Placed:
    """Of the rows of a class: 1 if it was predicted, else 0; their weights."""
    mine = targets == k
    return (labels[mine] == k).double(), None if weights is None else weights[mine]


def _confusion(
    targets: Int[Tensor, "rows"],
    labels: Int[Tensor, "rows"],
    num_classes: int,
    weights: Weights | None,
) -> Float64[Tensor, "classes classes"]:
    own = torch.ones(len(targets)) if weights is None else weights
    cells = targets * num_classes + labels
    counts = torch.bincount(cells, own.double(), minlength=num_classes**2)
    return counts.reshape(num_classes, num_classes)


def _plain(counts: Tensor, weights: Weights | None) -> list[list[float]] | list[list[int]]:
    """Whole numbers, unless rows have weights."""
    plain: list[list[int]] = (counts.round().long() if weights is None else counts).tolist()
    return plain


def _mean_of(each: Sequence[Json], name: str) -> float | None:
    known = [one[name] for one in each if one[name] is not None]
    return sum(known) / len(known) if known else None
