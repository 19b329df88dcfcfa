"""Choosing the rows that are held out for early stopping, calibration and scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.config import Split, SplitBy, TrainingConfig
from models.exceptions import InvalidData
from models.randomness import derive_seed

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


def divide_rows(config: TrainingConfig, num_rows: int, key: np.ndarray | None) -> Division:
    """Divide rows as `config.split` says: hold out scores first, then calibration, then stopping.

    Args:
        key: the column that `SplitBy` or `SplitTime` names; None for `random` and `last`.

    Raises:
        InvalidData: if no row would be left for the scores or for training.
    """
    order, ends = _hold_out_order(config.split, config.seed, num_rows, key)
    wanted = (
        max(1, round(config.validation_fraction * num_rows)),
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
    _refuse_empty(scores, num_rows, config.validation_fraction)
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


def split_rows(
    split: Split, fraction: float, seed: int, num_rows: int, key: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the row numbers to train on and to hold out, each in the original order.

    Raises:
        InvalidData: if one of the two sides would be empty.
    """
    order, ends = _hold_out_order(split, seed, num_rows, key)
    (held_out,) = _hold_out(order, ends, (max(1, round(fraction * num_rows)),))
    _refuse_empty(held_out, num_rows, fraction)
    return np.setdiff1d(np.arange(num_rows), held_out), held_out


def _hold_out_order(
    split: Split, seed: int, num_rows: int, key: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order in which they are held out, and the counts at which a set may end."""
    random, each = np.random.default_rng(derive_seed(seed, "split")), np.arange(1, num_rows + 1)
    if split == "last":
        return np.arange(num_rows)[::-1], each
    if key is None:
        return random.permutation(num_rows), each
    if not isinstance(split, SplitBy):
        return np.argsort(key, kind="stable")[::-1], each
    groups, member = np.unique(key.astype(str), return_inverse=True)
    order = random.permutation(len(groups))
    place = np.argsort(order)[member]
    return np.argsort(place, kind="stable"), np.cumsum(np.bincount(member)[order])


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
