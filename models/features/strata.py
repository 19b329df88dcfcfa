"""An order of rows whose beginning has every class in its share, and no class alone."""

import numpy as np
from jaxtyping import Int

FEW_SCORED = 5.0  # expected held-out rows of a class; 5 or more miss it in 1 of 150 tables


def are_rare(classes: Int[np.ndarray, "rows"], fraction: float) -> bool:
    """Whether a random share of the rows would have few rows of some class."""
    return bool(np.bincount(classes).min() * fraction < FEW_SCORED)


def stratified_order(
    classes: Int[np.ndarray, "rows"], first: int, random: np.random.Generator
) -> Int[np.ndarray, "rows"]:
    """All row numbers; the first ones are held out for the scores, those that follow for the rest.

    The last row of each class comes last of all, so that it is learned. Of the others each class
    with two rows or more has at least one among the first, as far as there is room, and otherwise
    its share, here and in each part that follows.

    Args:
        classes: of the rows, as numbers from 0.
        first: the number of scored rows.
    """
    shuffled = random.permutation(len(classes))
    rank = _rank_in_class(classes[shuffled])
    counts = np.bincount(classes)
    scored = _quotas(counts, first)
    mine = classes[shuffled]
    is_last, is_first = rank == counts[mine] - 1, rank < scored[mine]
    place = (rank + random.random(len(counts))[mine]) / counts[mine]  # even within each class
    part = np.where(is_first, 0, np.where(is_last, 2, 1))
    return shuffled[np.lexsort((place, part))]


def _rank_in_class(classes: Int[np.ndarray, "rows"]) -> Int[np.ndarray, "rows"]:
    """The number of earlier rows of the same class."""
    order = np.argsort(classes, kind="stable")
    counts = np.bincount(classes)
    rank = np.empty(len(classes), np.int64)
    rank[order] = np.arange(len(classes)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank


def _quotas(counts: Int[np.ndarray, "classes"], total: int) -> Int[np.ndarray, "classes"]:
    """How many of `total` rows are of each class: its share, at least 1, all but one at most.

    Adds up to `total`, unless the classes have too few rows to spare.
    """
    share = total * counts / counts.sum()
    most = np.maximum(counts - 1, 0)
    quotas = np.clip(np.floor(share).astype(np.int64), np.minimum(1, most), most)
    while quotas.sum() < min(total, most.sum()):
        quotas[np.where(quotas < most, share - quotas, -np.inf).argmax()] += 1
    while quotas.sum() > total:
        above = quotas > 1 if (quotas > 1).any() else quotas > 0
        quotas[np.where(above, share - quotas, np.inf).argmin()] -= 1
    return quotas
