"""Scores by class, which mean something for rare classes, and those of sets of classes.

Accuracy hides what happens to rare classes. Of two classes the scores are those of the rarer one of
the scored rows (`positive`), of more the plain means over the classes that these rows have. Rows
count as their weights. The definitions are those of scikit-learn: average precision is
Σ (Rₙ − Rₙ₋₁) Pₙ over the thresholds, balanced accuracy the mean recall, AUROC that of one class
against all others. Sets have their coverage and size by level, credible and conformal ones.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor
from torch.nn.functional import pad

from models.config import Json
from models.evaluation.class_sets import RankedClasses, SetCalibration
from models.evaluation.weighting import (
    Weights,
    filled,
    mean,
    of_mean,
    of_share,
    split_weights,
    standard_error,
    whole_if_possible,
)

_RANKED = ("average_precision", "auroc")
MOST_CLASSES = 50  # with scores of their own: more fill pages, not heads
WANTED_RECALL = 0.9  # at one of the thresholds
TARGET, LABEL, PROBABILITIES = "target", "label", "probabilities"  # entries of per-row scores
_KINDS = {"credible": "", "conformal": "conformal_"}  # of sets: their names' beginnings


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
    found, weights = split_weights({name: values.cpu() for name, values in scores.items()})
    targets, hit = found[TARGET], (found[LABEL] == found[TARGET]).double()
    own = [targets == k for k in range(len(classes))]
    known = [(hit[mine], weights[mine]) for mine in own if mine.any()]
    recalls = [mean(*hits) for hits in known]
    squares = sum((of_share(*hits) or 0.0) ** 2 for hits in known)
    metrics: Json = {"balanced_accuracy": sum(recalls) / len(recalls)}
    errors: Json = {"balanced_accuracy": math.sqrt(squares) / len(recalls)}
    if PROBABILITIES not in found:
        return metrics, errors
    cells = targets * len(classes) + found[LABEL]
    counts = torch.bincount(cells, weights, minlength=len(classes) ** 2).view(len(classes), -1)
    probabilities = found[PROBABILITIES].double().T
    each: list[Json] = []
    for k, (p, mine) in enumerate(zip(probabilities, own, strict=True)):
        rows, predicted, hits = map(float, (counts[k].sum(), counts[:, k].sum(), counts[k, k]))
        each.append(
            {
                "rows": int(mine.sum()),
                "recall": hits / rows if rows else None,
                "precision": hits / predicted if predicted else None,
                "average_precision": average_precision(p, mine, weights),
                "auroc": auroc_of(p, mine, weights),
            }
        )
    by_class = [{"class": name, **one} for name, one in zip(classes, each, strict=True)]
    confusion = {"classes": list(classes), "counts": whole_if_possible(counts)}
    metrics |= {"by_class": by_class, "confusion": confusion}
    if len(classes) != 2:
        return metrics | {name: _mean_of(each, name) for name in _RANKED}, errors
    positive = 0 if each[0]["rows"] < each[1]["rows"] else 1
    p, mine = probabilities[positive], own[positive]
    metrics |= {name: each[positive][name] for name in _RANKED}
    metrics |= {"positive": classes[positive], "thresholds": thresholds(p, mine, weights)}
    return metrics, errors | {"auroc": auroc_error(p, mine, weights)}


def _mean_of(each: Sequence[Json], name: str) -> float | None:
    known = [one[name] for one in each if one[name] is not None]
    return sum(known) / len(known) if known else None


def average_precision(
    scores: Float[Tensor, "rows"], positive: Bool[Tensor, "rows"], weights: Weights | None = None
) -> float | None:
    """Σ (Rₙ − Rₙ₋₁) Pₙ, with equal scores as one threshold; None without a positive row."""
    if not positive.any():
        return None
    _, recall, precision, _ = threshold_curve(scores, positive, weights)
    steps = torch.diff(recall, prepend=recall.new_zeros(1))
    return float((steps * precision).sum())


def thresholds(
    scores: Float[Tensor, "rows"], positive: Bool[Tensor, "rows"], weights: Weights | None = None
) -> list[Json]:
    """Recall, precision and share of the rows that have at least some probability: a half, and
    the largest one that reaches `WANTED_RECALL`; empty without a positive row."""
    if not positive.any():
        return []
    at, *curves = threshold_curve(scores, positive, weights)
    names = ("recall", "precision", "share")
    wanted = int(torch.nonzero(curves[0] >= WANTED_RECALL - 1e-12)[0])
    half: Json = {"threshold": 0.5, "recall": 0.0, "precision": None, "share": 0.0}
    reached: Json = {"threshold": float(at[wanted])}
    for one, place in ((half, int((at >= 0.5).sum()) - 1), (reached, wanted)):
        if place >= 0:
            one |= {name: float(v[place]) for name, v in zip(names, curves, strict=True)}
    return [half, reached]


def threshold_curve(
    scores: Float[Tensor, "rows"], positive: Bool[Tensor, "rows"], weights: Weights | None = None
) -> tuple[Float64[Tensor, "thresholds"], ...]:
    """Distinct scores from high to low; recall, precision and share of the rows at or above."""
    ordered, order = scores.double().sort(descending=True)
    own = filled(weights, scores)[order]
    hits, rows = (own * positive[order]).cumsum(0), own.cumsum(0)
    ends = torch.cat([ordered[1:] != ordered[:-1], torch.tensor([True])])
    ordered, hits, rows = ordered[ends], hits[ends], rows[ends]
    return ordered, hits / hits[-1], hits / rows, rows / rows[-1]


def auroc(
    usual: Float[Tensor, "usual"], unlike: Float[Tensor, "unlike"], weights: Weights | None = None
) -> float:
    """P(a score of `unlike` is above one of `usual`) + ½ P(they are equal), over all pairs.

    0.5 for scores without information, such as the variance 0 of a single weight vector. The area
    under the ROC curve is the Mann–Whitney statistic: Hanley and McNeil 1982.

    Args:
        weights: of the usual rows.
    """
    return mean(_share_below(unlike, usual, filled(weights, usual)))


def auroc_of(
    scores: Float[Tensor, "rows"], positive: Bool[Tensor, "rows"], weights: Weights | None = None
) -> float | None:
    """P(a positive row's score is above a negative one's) + ½ P(equal); None without both."""
    if not positive.any() or positive.all():
        return None
    w = filled(weights, scores)
    below = _share_below(scores[positive], scores[~positive], w[~positive])
    return mean(below, w[positive])


def auroc_error(
    scores: Float[Tensor, "rows"], positive: Bool[Tensor, "rows"], weights: Weights | None = None
) -> float | None:
    """√(s₁₀² ÷ n₁ + s₀₁² ÷ n₀), from the share of negative rows below each positive one, and of
    positive rows below each negative one (DeLong et al. 1988)."""
    if not positive.any() or positive.all():
        return None
    w, sides = filled(weights, scores), (positive, ~positive)
    error = math.hypot(
        *(
            standard_error(_share_below(scores[own], scores[other], w[other]), w[own])
            for own, other in (sides, sides[::-1])
        )
    )
    return error if math.isfinite(error) else None


def _share_below(
    values: Float[Tensor, "some"], others: Float[Tensor, "others"], weights: Weights
) -> Float64[Tensor, "some"]:
    """The share of others below each value, equal ones by half."""
    ordered, order = others.sort()
    sums = pad(weights[order].cumsum(0), (1, 0))
    below = torch.searchsorted(ordered, values)
    not_above = torch.searchsorted(ordered, values, right=True)
    return (sums[below] + sums[not_above]) / (2 * sums[-1])


def set_row_scores(
    probabilities: Float[Tensor, "rows classes"],
    targets: Int[Tensor, "rows"],
    sets: SetCalibration | None,
    levels: Sequence[float],
) -> dict[str, Float[Tensor, "rows"]]:
    """Per row: 1 if the set of a level contains the true class, else 0; its number of classes."""
    ranked = RankedClasses.of(probabilities)
    ranks, scores = ranked.ranks(targets), {}
    for level in levels:
        sizes = {"credible": ranked.credible_sizes(level)}
        if sets is not None:
            sizes["conformal"] = sets.sizes(ranked, level)
        for kind, size in sizes.items():
            scores[f"{_KINDS[kind]}set_coverage_{level:g}"] = (ranks <= size).double()
            scores[f"{_KINDS[kind]}set_size_{level:g}"] = size.double()
    return scores


def set_metrics(scores: Mapping[str, Tensor], levels: Sequence[float]) -> tuple[Json, Json]:
    """Means of the per-row scores by level, and their standard errors; empty without them."""
    found, weights = split_weights({name: values.cpu() for name, values in scores.items()})
    metrics: Json = {}
    errors: Json = {}
    for name, columns in _by_level(found, levels):
        error = of_share if name.endswith("coverage") else of_mean
        metrics[name] = {level: mean(values, weights) for level, values in columns.items()}
        errors[name] = {level: error(values, weights) for level, values in columns.items()}
    return metrics, errors


def set_coverage_by_class(
    scores: Mapping[str, Tensor], levels: Sequence[float], num_classes: int
) -> list[Json]:
    """The coverage among the rows of each class; empty for many classes, None without a row."""
    if num_classes > MOST_CLASSES or TARGET not in scores:
        return []
    found, weights = split_weights({name: values.cpu() for name, values in scores.items()})
    own = [found[TARGET] == k for k in range(num_classes)]
    return [
        {
            name: {
                level: mean(values[mine], weights[mine]) if mine.any() else None
                for level, values in columns.items()
            }
            for name, columns in _by_level(found, levels)
            if name.endswith("coverage")
        }
        for mine in own
    ]


def _by_level(
    scores: Mapping[str, Tensor], levels: Sequence[float]
) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """The per-row scores of each name, by level."""
    for prefix in _KINDS.values():
        for name in (f"{prefix}set_coverage", f"{prefix}set_size"):
            columns = {f"{level:g}": scores.get(f"{name}_{level:g}") for level in levels}
            known = {level: values for level, values in columns.items() if values is not None}
            if known:
                yield name, known
