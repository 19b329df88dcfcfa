"""Which rows are held out for early stopping, calibration and scores, and folds of the others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.config import SplitBy, TrainingConfig
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.messages import first_of
from models.randomness import derive_seed
from models.tensors import TensorRecord

_FEW_SCORED = 5.0  # expected held-out rows of a class; 5 or more miss it in 1 of 150 tables
_GROUP_ORDERS = 20  # that are tried, until one has every class on both sides
_LISTED = 10  # classes in a note
EFFECT_FOLDS = 8  # of the rows whose targets make the effects of levels
MIN_CALIBRATION = 19  # the fewest rows for which a conformal interval of 0.95 is bounded


@dataclass(frozen=True)
class Division:
    """Row numbers of four disjoint sets, each in the original order.

    `stopping` chooses the epoch, `calibration` scales the predicted uncertainty, `scores` gives the
    reported metrics. `stopping` and `calibration` may be empty.
    """

    training: np.ndarray
    stopping: np.ndarray
    calibration: np.ndarray
    scores: np.ndarray

    @property
    def unscored(self) -> np.ndarray:
        """All rows but those of `scores`: what baselines may learn from."""
        return np.sort(np.concatenate([self.training, self.stopping, self.calibration]))


def split_key(config: TrainingConfig, columns: Columns) -> np.ndarray | None:
    """The column of a split by group or time."""
    return None if config.split_column is None else columns[config.split_column]


def divide_rows(
    config: TrainingConfig,
    num_rows: int,
    key: np.ndarray | None,
    classes: np.ndarray | None = None,
) -> Division:
    """Divide rows as `config.split` says: hold out scores first, then calibration, then stopping.

    Args:
        key: the column that `SplitBy` or `SplitTime` names; None for `random` and `last`.
        classes: the class of each row, numbered from 0; a random split then holds out some rows
            of each rare class, and of several orders of the groups the one is taken that leaves out
            the fewest classes.

    Raises:
        InvalidData: if no row would be left for the scores or for training.
    """
    scored = max(1, round(config.validation_fraction * num_rows))
    order, ends = _hold_out_order(config, scored, num_rows, key, classes)
    wanted = (
        scored,
        calibration_rows(config.calibration_fraction or 0.0, num_rows),
        round((config.stopping_fraction or 0.0) * num_rows),
    )
    if sum(wanted) >= num_rows:
        raise InvalidData(
            f"holding out {wanted[0]} rows for the scores, {wanted[1]} for calibration and "
            f"{wanted[2]} for early stopping leaves none of {num_rows} for training: "
            "lower these fractions",
            "/training/validation_fraction",
        )
    scores, calibrating, stopping = _hold_out(order, ends, wanted)
    if len(calibrating) < MIN_CALIBRATION:  # too few groups: train on these rows instead
        calibrating = calibrating[:0]
    if not len(scores):
        raise InvalidData(
            f"holding out {config.validation_fraction:g} of {num_rows} rows leaves one side of the "
            "split empty",
            "/training/split",
        )
    held_out = np.concatenate([scores, calibrating, stopping])
    learned = np.setdiff1d(np.arange(num_rows), held_out)
    return Division(learned, stopping, calibrating, scores)


def calibration_rows(fraction: float, num_rows: int) -> int:
    """Return how many rows to calibrate with: the 20k − 1 nearest to the fraction, at least 19.

    A conformal interval ends at the ⌈(n + 1) · level⌉-th of n residuals and covers
    ⌈(n + 1) · level⌉ / (n + 1) of new rows. If n + 1 is a multiple of 20, that is the level itself
    for 0.5, 0.8, 0.9 and 0.95. With fewer than 19 rows there is no interval of 0.95.

    Tables of fewer than 95 rows are not calibrated, unless the fraction is large enough for 19
    rows: without more than a fifth of its rows a fit loses more than the intervals gain.
    """
    if not fraction or num_rows * max(fraction, 0.2) < MIN_CALIBRATION:
        return 0
    return 20 * max(1, round((fraction * num_rows + 1) / 20)) - 1


def _hold_out_order(
    config: TrainingConfig,
    scored: int,
    num_rows: int,
    key: np.ndarray | None,
    classes: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order in which they are held out, and the counts at which a set may end."""
    random = np.random.default_rng(derive_seed(config.seed, "split"))
    each = np.arange(1, num_rows + 1)
    if config.split == "last":
        return np.arange(num_rows)[::-1], each
    if key is None:
        fraction = config.validation_fraction
        if classes is not None and np.bincount(classes).min() * fraction < _FEW_SCORED:
            return _stratified_order(classes, scored, random), each
        return random.permutation(num_rows), each
    if not isinstance(config.split, SplitBy):
        return np.argsort(key, kind="stable")[::-1], each
    groups, member = np.unique(key.astype(str), return_inverse=True)
    found = _in_groups(member, random.permutation(len(groups)))
    if classes is None:
        return found
    left_out = _left_out(*found, scored, classes)
    for _ in range(_GROUP_ORDERS - 1):
        if not any(left_out):
            break
        other = _in_groups(member, random.permutation(len(groups)))
        if (fewer := _left_out(*other, scored, classes)) < left_out:
            found, left_out = other, fewer
    return found


def _in_groups(member: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows by group, the groups in an order; the counts of rows at which a group ends."""
    place = np.argsort(order)[member]
    return np.argsort(place, kind="stable"), np.cumsum(np.bincount(member)[order])


def _left_out(
    order: np.ndarray, ends: np.ndarray, first: int, classes: np.ndarray
) -> tuple[int, int]:
    """How many classes have no row that is left to learn from, and how many no scored one."""
    (scored,) = _hold_out(order, ends, (first,))
    rows = np.bincount(classes)
    held_out = np.bincount(classes[scored], minlength=len(rows))
    return int((held_out == rows).sum()), int((held_out == 0).sum())


def _hold_out(order: np.ndarray, ends: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """Take the sets one after the other, at least as large as wanted; leave the last group.

    A set after the first stays empty if its groups have more than twice the wanted rows: they are
    more useful for training.
    """
    start = 0
    sets: list[np.ndarray] = []
    for size in sizes:
        last = min(int(np.searchsorted(ends, start + size)), len(ends) - 2)
        stop = max(start, int(ends[last])) if size and last >= 0 else start
        if sets and stop - start > 2 * size:
            stop = start
        sets.append(np.sort(order[start:stop]))
        start = stop
    return sets


def _stratified_order(
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
    mine, counts = classes[shuffled], np.bincount(classes)
    scored = _quotas(counts, first)
    rank = np.empty(len(classes), np.int64)  # the number of earlier rows of the same class
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    rank[np.argsort(mine, kind="stable")] = np.arange(len(classes)) - starts
    is_last, is_first = rank == counts[mine] - 1, rank < scored[mine]
    place = (rank + random.random(len(counts))[mine]) / counts[mine]  # even within each class
    part = np.where(is_first, 0, np.where(is_last, 2, 1))
    return shuffled[np.lexsort((place, part))]


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


@dataclass(frozen=True)
class Folds(TensorRecord):
    """Folds of rows for members that leave out one each: member m leaves out fold m mod `count`.

    Every row then has members that did not learn from it. A fold may be empty.
    """

    of_row: Int[Tensor, "rows"]
    count: int

    def rows(self, fold: int) -> Int[Tensor, "some"]:
        """The numbers of the rows in a fold."""
        return self._by_fold[fold]

    def members(self, fold: int, num_members: int) -> Sequence[int]:
        """The members that leave out the fold."""
        return range(fold, num_members, self.count)

    def weights(self, num_members: int) -> Float[Tensor, "rows members"]:
        """1 where a member learns from a row, 0 where it leaves the row out."""
        left_out = torch.arange(num_members, device=self.of_row.device) % self.count
        return (self.of_row.unsqueeze(1) != left_out).float()

    def cut(self, parts: int) -> "Folds":
        """Each fold in so many parts of equal sizes."""
        place = torch.empty_like(self.of_row)
        for rows in self._by_fold:
            place[rows] = torch.arange(len(rows), device=rows.device) % parts
        return Folds(self.of_row * parts + place, self.count * parts)

    @cached_property
    def _by_fold(self) -> list[Tensor]:
        return [torch.nonzero(self.of_row == fold).squeeze(1) for fold in range(self.count)]


def assign_folds(
    config: TrainingConfig, count: int, key: np.ndarray | None, classes: np.ndarray | None
) -> Int[Tensor, "rows"]:
    """The fold of each row, of about equal sizes; those for effects of levels by default.

    Rows of a group stay together. Of rows in time, a fold is a block. Else folds are random, with
    about the same share of each class.

    Args:
        key: the groups or times of the rows, if the split has a column.
        classes: the class of each row; None for numbers.
    """
    folds = config.folds or EFFECT_FOLDS
    random = np.random.default_rng(derive_seed(config.seed, "folds"))
    if isinstance(config.split, SplitBy) and key is not None:
        return torch.from_numpy(_by_group(key.astype(str), folds, random))
    if config.split == "last" or key is not None:
        order = np.arange(count) if key is None else np.argsort(key, kind="stable")
        return torch.from_numpy(_places(order) * folds // count)
    order = random.permutation(count)
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    return torch.from_numpy(_places(order) % folds)


def _places(order: np.ndarray) -> np.ndarray:
    """The place of each row in an order."""
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places


def _by_group(key: np.ndarray, folds: int, random: np.random.Generator) -> np.ndarray:
    """Give each group, the largest first, to the smallest fold so far."""
    groups, member, sizes = np.unique(key, return_inverse=True, return_counts=True)
    order = random.permutation(len(groups))
    fold_of, filled = np.zeros(len(groups), dtype=np.int64), np.zeros(folds, dtype=np.int64)
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        fold_of[group] = filled.argmin()
        filled[fold_of[group]] += sizes[group]
    return fold_of[member]


def notes_on_classes(
    classes: Sequence[object], numbers: np.ndarray, split: Division
) -> Iterator[str]:
    """Sentences on classes with one row, and on those that are not learned or not scored.

    Args:
        classes: in the order of their numbers.
        numbers: the class of each row.
    """
    rows = np.bincount(numbers, minlength=len(classes))
    learned = np.bincount(
        numbers[np.concatenate([split.training, split.stopping])], minlength=len(classes)
    )
    scored = np.bincount(numbers[split.scores], minlength=len(classes))
    single = (rows == 1) & (learned == 1)
    for left_out, what in (
        (single, "a single row, which is learned and not scored"),
        (learned == 0, "no row to learn from, because the split holds all of them out"),
        ((scored == 0) & ~single, "no row among those that are scored"),
    ):
        if names := [name for name, out in zip(classes, left_out, strict=True) if out]:
            noun, verb = ("class", "has") if len(names) == 1 else ("classes", "have")
            yield f"the {noun} {first_of(names, _LISTED)} {verb} {what}"
