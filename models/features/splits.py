"""Choosing the rows that are held out for early stopping, calibration and scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.config import Split, SplitBy, TrainingConfig
from models.exceptions import InvalidData
from models.features.strata import are_rare, stratified_order
from models.randomness import derive_seed

_GROUP_ORDERS = 20  # that are tried, until one has every class on both sides
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


def divide_rows(
    config: TrainingConfig,
    num_rows: int,
    key: np.ndarray | None,
    classes: np.ndarray | None = None,
) -> Division:
    """Divide rows as `config.split` says: hold out scores first, then calibration, then stopping.

    Args:
        key: the column that `SplitBy` or `SplitTime` names; None for `random` and `last`.
        classes: as `class_numbers`; a random split then holds out some rows of each rare class, and
            of several orders of the groups the one is taken that leaves out the fewest classes.

    Raises:
        InvalidData: if no row would be left for the scores or for training.
    """
    fraction = config.validation_fraction
    order, ends = _hold_out_order(config.split, fraction, config.seed, num_rows, key, classes)
    wanted = (
        _num_scored(fraction, num_rows),
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
    _refuse_empty(scores, num_rows, fraction)
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


def class_numbers(values: np.ndarray) -> np.ndarray:
    """The class of each row, numbered from 0 in the order of the values."""
    return np.unique(values, return_inverse=True)[1]


def split_rows(  # noqa: PLR0917 - those of `divide_rows`
    split: Split,
    fraction: float,
    seed: int,
    num_rows: int,
    key: np.ndarray | None,
    classes: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the row numbers to train on and to hold out, each in the original order.

    The latter are the `scores` of `divide_rows`.

    Raises:
        InvalidData: if one of the two sides would be empty.
    """
    order, ends = _hold_out_order(split, fraction, seed, num_rows, key, classes)
    (held_out,) = _hold_out(order, ends, (_num_scored(fraction, num_rows),))
    _refuse_empty(held_out, num_rows, fraction)
    return np.setdiff1d(np.arange(num_rows), held_out), held_out


def _num_scored(fraction: float, num_rows: int) -> int:
    return max(1, round(fraction * num_rows))


def _hold_out_order(  # noqa: PLR0917 - those of `split_rows`
    split: Split,
    fraction: float,
    seed: int,
    num_rows: int,
    key: np.ndarray | None,
    classes: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order in which they are held out, and the counts at which a set may end."""
    random, each = np.random.default_rng(derive_seed(seed, "split")), np.arange(1, num_rows + 1)
    first = _num_scored(fraction, num_rows)
    if split == "last":
        return np.arange(num_rows)[::-1], each
    if key is None and classes is not None and are_rare(classes, fraction):
        return stratified_order(classes, first, random), each
    if key is None:
        return random.permutation(num_rows), each
    if not isinstance(split, SplitBy):
        return np.argsort(key, kind="stable")[::-1], each
    groups, member = np.unique(key.astype(str), return_inverse=True)
    found = _in_groups(member, random.permutation(len(groups)))
    if classes is None:
        return found
    left_out = _left_out(*found, first, classes)
    for _ in range(_GROUP_ORDERS - 1):
        if not any(left_out):
            break
        other = _in_groups(member, random.permutation(len(groups)))
        if (fewer := _left_out(*other, first, classes)) < left_out:
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


def _refuse_empty(held_out: np.ndarray, num_rows: int, fraction: float) -> None:
    if not len(held_out):
        raise InvalidData(
            f"holding out {fraction:g} of {num_rows} rows leaves one side of the split empty",
            "/training/split",
        )
