"""Scores by class, which mean something for rare classes, and those of sets of classes.

Accuracy hides what happens to rare classes. Of two classes the scores are those of the rarer one of
the scored rows (`positive`), of more the plain means over the classes that these rows have. Rows
count as their weights. The definitions are those of scikit-learn: average precision is
Σ (Rₙ − Rₙ₋₁) Pₙ over the thresholds, balanced accuracy the mean recall, AUROC that of one class
against all others. Sets have their coverage and size by level, credible and conformal ones.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor
from torch.nn.functional import pad

from models.config import Json
from models.evaluation.class_sets import Probabilities, RankedClasses, SetCalibration, Targets
from models.evaluation.weighting import (
    PerRow,
    Weights,
    filled,
    mean,
    means_by_level,
    of_share,
    split_weights,
    standard_error,
    whole_if_possible,
)

_RANKED = ("average_precision", "auroc")
MOST_CLASSES = 50  # with scores of their own: more fill pages, not heads
WANTED_RECALL = 0.9  # at one of the thresholds
TARGET, LABEL, PROBABILITIES = "target", "label", "probabilities"  # entries of per-row scores
_COVERAGES = ("set_coverage", "conformal_set_coverage")
_SETS = {name: name for name in (*_COVERAGES, "set_size", "conformal_set_size")}

Positive = Bool[Tensor, "rows"]


def class_row_scores(probabilities: Probabilities, targets: Targets) -> dict[str, Tensor]:
    """What `class_metrics` reads of each row. More than `MOST_CLASSES` have no probabilities."""
    scores = {TARGET: targets, LABEL: probabilities.argmax(-1)}
    if probabilities.shape[-1] > MOST_CLASSES:
        return scores
    return scores | {PROBABILITIES: probabilities}


def class_metrics(scores: Mapping[str, Tensor], classes: Sequence[object]) -> tuple[Json, Json]:
    """The metrics, and those of their standard errors that are known; both empty without entries.

    `confusion.counts` has a row per true class and a column per predicted one, in the order of
    `confusion.classes`. A score of a class without rows is None.
    """
    if TARGET not in scores:
        return {}, {}
    rows, weights = split_weights(scores)
    targets, hit = rows[TARGET], (rows[LABEL] == rows[TARGET]).double()
    is_class = [targets == k for k in range(len(classes))]
    hits = [(hit[mine], weights[mine]) for mine in is_class if mine.any()]
    recalls = [mean(*of_class) for of_class in hits]
    squares = sum((of_share(*of_class) or 0.0) ** 2 for of_class in hits)
    metrics: Json = {"balanced_accuracy": sum(recalls) / len(recalls)}
    errors: Json = {"balanced_accuracy": math.sqrt(squares) / len(recalls)}
    if PROBABILITIES not in rows:
        return metrics, errors
    cells = targets * len(classes) + rows[LABEL]
    counts = torch.bincount(cells, weights, minlength=len(classes) ** 2).view(len(classes), -1)
    probabilities = rows[PROBABILITIES].double().T
    by_class: list[Json] = []
    for k, (p, mine) in enumerate(zip(probabilities, is_class, strict=True)):
        true, predicted, right = map(float, (counts[k].sum(), counts[:, k].sum(), counts[k, k]))
        by_class.append(
            {
                "class": classes[k],
                "rows": int(mine.sum()),
                "recall": right / true if true else None,
                "precision": right / predicted if predicted else None,
                "average_precision": average_precision(p, mine, weights),
                "auroc": auroc_of(p, mine, weights),
            }
        )
    confusion = {"classes": list(classes), "counts": whole_if_possible(counts)}
    metrics |= {"by_class": by_class, "confusion": confusion}
    if len(classes) != 2:
        return metrics | {name: _mean_of(by_class, name) for name in _RANKED}, errors
    positive = 0 if by_class[0]["rows"] < by_class[1]["rows"] else 1
    p, mine = probabilities[positive], is_class[positive]
    metrics |= {name: by_class[positive][name] for name in _RANKED}
    metrics |= {"positive": classes[positive], "thresholds": thresholds(p, mine, weights)}
    return metrics, errors | {"auroc": auroc_error(p, mine, weights)}


def _mean_of(by_class: Sequence[Json], name: str) -> float | None:
    known = [scores[name] for scores in by_class if scores[name] is not None]
    return sum(known) / len(known) if known else None


def average_precision(scores: PerRow, positive: Positive, weights: Weights) -> float | None:
    """Σ (Rₙ − Rₙ₋₁) Pₙ, with equal scores as one threshold; None without a positive row."""
    if not positive.any():
        return None
    _, recall, precision, _ = threshold_curve(scores, positive, weights)
    steps = torch.diff(recall, prepend=recall.new_zeros(1))
    return float((steps * precision).sum())


def thresholds(scores: PerRow, positive: Positive, weights: Weights) -> list[Json]:
    """Recall, precision and share of the rows that have at least some probability: a half, and
    the largest one that reaches `WANTED_RECALL`; empty without a positive row."""
    if not positive.any():
        return []
    at, *curves = threshold_curve(scores, positive, weights)
    names = ("recall", "precision", "share")
    wanted = int(torch.nonzero(curves[0] >= WANTED_RECALL - 1e-12)[0])
    none: Json = {"recall": 0.0, "precision": None, "share": 0.0}

    def at_place(place: int) -> Json:
        return {name: float(v[place]) for name, v in zip(names, curves, strict=True)}

    above = int((at >= 0.5).sum())
    half = at_place(above - 1) if above else none
    return [{"threshold": 0.5, **half}, {"threshold": float(at[wanted]), **at_place(wanted)}]


def threshold_curve(
    scores: PerRow, positive: Positive, weights: Weights
) -> tuple[Float64[Tensor, "thresholds"], ...]:
    """Distinct scores from high to low; recall, precision and share of the rows at or above."""
    ordered, order = scores.double().sort(descending=True)
    w = weights[order]
    hits, rows = (w * positive[order]).cumsum(0), w.cumsum(0)
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


def auroc_of(scores: PerRow, positive: Positive, weights: Weights) -> float | None:
    """P(a positive row's score is above a negative one's) + ½ P(equal); None without both."""
    if not positive.any() or positive.all():
        return None
    below = _share_below(scores[positive], scores[~positive], weights[~positive])
    return mean(below, weights[positive])


def auroc_error(scores: PerRow, positive: Positive, weights: Weights) -> float | None:
    """√(s₁₀² ÷ n₁ + s₀₁² ÷ n₀), from the share of negative rows below each positive one, and of
    positive rows below each negative one (DeLong et al. 1988)."""
    if not positive.any() or positive.all():
        return None
    each, others = weights[positive], weights[~positive]
    of_positive = _share_below(scores[positive], scores[~positive], others)
    of_negative = _share_below(scores[~positive], scores[positive], each)
    errors = standard_error(of_positive, each), standard_error(of_negative, others)
    return math.hypot(*errors) if all(map(math.isfinite, errors)) else None


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
    probabilities: Probabilities,
    targets: Targets,
    sets: SetCalibration | None,
    levels: Sequence[float],
) -> dict[str, PerRow]:
    """Per row: 1 if the set of a level contains the true class, else 0; its number of classes."""
    ranked = RankedClasses.of(probabilities)
    ranks, scores = ranked.ranks(targets), {}
    for level in levels:
        sizes = {"": ranked.credible_sizes(level)}
        if sets is not None:
            sizes["conformal_"] = sets.sizes(ranked, level)
        for kind, size in sizes.items():
            scores[f"{kind}set_coverage_{level:g}"] = (ranks <= size).double()
            scores[f"{kind}set_size_{level:g}"] = size.double()
    return scores


def set_metrics(scores: Mapping[str, Tensor], levels: Sequence[float]) -> tuple[Json, Json]:
    """Means of the per-row scores by level, and their standard errors; empty without them."""
    rows, weights = split_weights(scores)
    return means_by_level(rows, weights, levels, _SETS)


def set_coverage_by_class(
    scores: Mapping[str, Tensor], levels: Sequence[float], num_classes: int
) -> list[Json]:
    """The coverage among the rows of each class; empty for many classes, None without a row."""
    if num_classes > MOST_CLASSES or TARGET not in scores:
        return []
    rows, weights = split_weights(scores)
    by_class = []
    for k in range(num_classes):
        mine = rows[TARGET] == k
        of_class = {name: values[mine] for name, values in rows.items()}
        names = {name: name for name in _COVERAGES}
        means, _ = means_by_level(of_class, weights[mine], levels, names)
        if not mine.any():
            means = {name: dict.fromkeys(by_level) for name, by_level in means.items()}
        by_class.append(means)
    return by_class
