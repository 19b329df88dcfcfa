"""Adaptive conformal inference: the paper's bound, and coverage when noise changes."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from models.evaluation.adaptive import (
    MAX_LABELS,
    Labels,
    Reference,
    adapt,
    allowed_score,
    allowed_scores,
    covered,
    follow,
    needed_levels,
    track,
)
from models.evaluation.calibration import NumberCalibration, ShapeCalibration
from models.evaluation.path_calibration import PathCalibration

LEVEL, LABELS, HALF = 0.9, 1000, 500
WINDOW = 200

Scale = Callable[[np.ndarray], np.ndarray]


def gaussian(rows: int, seed: int, scale: float | np.ndarray = 1.0) -> np.ndarray:
    """|y − mean| ÷ deviation where the deviation is `scale` times the predicted one."""
    return np.asarray(np.abs(scale * np.random.default_rng(seed).standard_normal(rows)))


def at_once(scores: np.ndarray) -> Labels:
    """Labels that come before the next prediction."""
    return Labels.newest(scores.tolist(), range(len(scores)))


def reference(rows: int = 200, seed: int = 1) -> Reference:
    return Reference(np.sort(gaussian(rows, seed)), np.ones(rows))


def doubled(t: np.ndarray) -> np.ndarray:
    return np.where(t < HALF, 1.0, 2.0)


def drifting(t: np.ndarray) -> np.ndarray:
    return 1 + t / HALF


def seasonal(t: np.ndarray) -> np.ndarray:
    return 1 + 0.5 * np.sin(2 * np.pi * t / WINDOW)


@pytest.mark.parametrize("step", [0.005, 0.05, 0.5])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("hostile", [False, True])
def test_misses_are_within_the_bound_of_the_paper(step: float, level: float, hostile: bool) -> None:
    """Proposition 4.1 of Gibbs and Candès holds for any sequence, so also for a hostile one."""
    needed = np.random.default_rng(0).random(400) ** 0.1
    if hostile:  # in turn, none is covered and all are
        needed = np.where(np.arange(400) // 100 % 2, 1.0, 0.0)
    levels = track(needed, [level], [step])[:-1, 0]
    misses = (levels <= needed).mean()
    bound = (max(level, 1 - level) + step) / (step * 400)
    assert abs(misses - (1 - level)) <= bound


def test_a_row_is_covered_above_its_needed_level() -> None:
    """The rank that updates the level is that of the interval that is answered."""
    scores, calibration = gaussian(60, 2), Reference(np.sort(gaussian(40, 3)), np.full(40, 0.7))
    for t, needed in enumerate(needed_levels(calibration, scores, np.arange(60))):
        for level in (needed - 1e-6, needed + 1e-6):
            inside = scores[t] <= allowed_score(calibration, scores[:t], level)
            assert inside == (level > needed)


def test_rows_are_ranked_among_those_that_are_known() -> None:
    scores, random = gaussian(50, 4), np.random.default_rng(5)
    known = np.array([random.integers(0, t + 1) for t in range(50)])
    calibration = reference(30)
    found = needed_levels(calibration, scores, known)
    for t in range(50):
        among = np.concatenate([calibration.scores, scores[: known[t]]])
        assert found[t] == pytest.approx((among < scores[t]).sum() / (len(among) + 1))


def test_old_rows_give_way_to_labels() -> None:
    """Beside `MAX_LABELS` labels calibration rows count as nothing."""
    calibration = reference(5000)
    assert calibration.share(np.array([0, 500, 2000])) == pytest.approx([0.2, 0.1, 0.0])
    scores = 10 + gaussian(MAX_LABELS, 6)
    assert allowed_score(calibration, scores, 0.5) == np.sort(scores)[500]
    assert allowed_score(calibration, scores[:100], 0.5) < 10


@pytest.mark.parametrize("scale", [doubled, drifting, seasonal])
def test_coverage_is_restored_when_the_noise_changes(scale: Scale) -> None:
    """In every window of 200 rows within 8 points, after the change within 3 on average.

    The share in a window of independent rows would have the standard error 0.021.
    """
    calibration, plain = reference(), NumberCalibration(1.0, tuple(reference().scores), 200)
    local, after, of_conformal = [], [], []
    for seed in range(5):
        scores = gaussian(LABELS, 10 + seed, scale(np.arange(LABELS)))
        labels = at_once(scores)
        inside = covered(calibration, labels, follow(calibration, labels, [LEVEL]))[:, 0]
        assert abs(inside.mean() - LEVEL) < 0.03
        local.append(np.convolve(inside, np.ones(WINDOW) / WINDOW, "valid"))
        after.append(inside[HALF + WINDOW // 2 :].mean())
        of_conformal.append((scores <= plain.half_width(LEVEL))[HALF:].mean())
    assert np.abs(np.mean(local, 0) - LEVEL).max() < 0.08
    assert np.mean(after) == pytest.approx(LEVEL, abs=0.02)
    if scale is not seasonal:  # which averages out over a season
        assert np.mean(of_conformal) < 0.65


def test_without_a_change_the_level_stays() -> None:
    found = [
        adapt(reference(2000, s), at_once(gaussian(LABELS, 20 + s)), [0.8, LEVEL]) for s in range(5)
    ]
    for i, level in enumerate((0.8, LEVEL)):
        assert np.mean([one[i].adapted for one in found]) == pytest.approx(level, abs=0.03)
        expected = {0.8: 1.2816, LEVEL: 1.6449}[level]  # of |N(0, 1)|
        assert np.mean([one[i].score for one in found]) == pytest.approx(expected, rel=0.1)


def test_intervals_stay_bounded_when_the_noise_grows_beyond_every_calibration_row() -> None:
    """Their scores would have no quantile that is large enough: labels join them."""
    scores = gaussian(LABELS, 30, 5.0)
    (found,) = adapt(reference(50), at_once(scores), [LEVEL])
    assert found.score == pytest.approx(5 * 1.6449, rel=0.15)


def test_a_score_that_is_no_number_was_never_covered() -> None:
    assert Labels.newest([math.nan, 1.0], [0, 1]).scores == (math.inf, 1.0)
    (found,) = adapt(reference(50), at_once(np.full(30, math.nan)), [LEVEL])
    assert found.score is None


def test_only_the_newest_rows_count() -> None:
    found = Labels.newest([0.0] * 5 + [1.0] * MAX_LABELS, [0] * 6 + [4, 7] + [9] * 997)
    assert found.scores == (1.0,) * MAX_LABELS
    assert found.known[:4] == (0, 0, 2, 4)


@pytest.mark.parametrize("steps", [6, 12])
def test_steps_of_forecasts_are_covered_although_their_errors_are_shared(steps: int) -> None:
    """Errors of a random walk from each origin, known after the last step; twice too wide.

    Ranked by what no forecast could know, 80 % would be covered.
    """
    shares = []
    for seed in range(4):
        noise = 0.5 * np.random.default_rng(seed).standard_normal(LABELS // steps + steps)
        scores, known = [], []
        for t in range(LABELS // steps):
            path = noise[t : t + steps].cumsum() / np.sqrt(np.arange(1, steps + 1))
            scores += np.abs(path).tolist()
            known += [max(0, t - steps + 1) * steps] * steps
        labels = Labels.newest(scores, known)
        found = covered(reference(), labels, follow(reference(), labels, [LEVEL]))
        shares.append(found[len(found) // 2 :].mean())
    assert np.mean(shares) == pytest.approx(LEVEL, abs=0.05)


@pytest.mark.parametrize(
    "calibration",
    [
        NumberCalibration(1.0, tuple(np.sort(gaussian(99, 7)).tolist()), 99),
        NumberCalibration(1.0, (0.5, 1.0, 2.0), 3, (4.0, 5.0, 30.0)),
        ShapeCalibration(1.0, (0.1, 0.5, 0.8, 0.95), 4),
        PathCalibration(1.0, 0.0, 2, tuple(np.sort(gaussian(60, 8)).tolist()), 30, 60.0),
    ],
)
def test_without_labels_they_are_the_conformal_ones(calibration: object) -> None:
    score = getattr(calibration, "half_width", None) or calibration.probability  # type: ignore[attr-defined]
    levels = [0.1, 0.5, 0.9, 0.99]
    assert allowed_scores(levels, (), score) == [score(level) for level in levels]
    found = calibration.reference()  # type: ignore[attr-defined]
    for level in levels:  # the rank among weighted rows is that of the calibration
        expected = score(level)
        ours = allowed_score(found, np.empty(0), level)
        assert ours == expected or (math.isinf(ours) and expected >= 1.0)


def test_the_steps_of_a_forecast_move_the_level_as_one_row_does() -> None:
    """Twelve steps of random walks from 150 origins: their labels come when the last is known.

    Mean of 20 series: 85 % are in intervals of 90 % if each step counts as a row, 88 to 89 % if all
    steps together do. The difference of two runs on the same series is known to half a point.
    """
    steps, origins = 12, 150
    known = np.repeat(np.maximum(0, np.arange(origins) - steps + 1), steps) * steps
    shares = []
    for seed in range(20):
        walk = np.random.default_rng(seed).standard_normal(origins + 60).cumsum()
        ahead = np.arange(1, steps + 1)
        errors = [np.abs(walk[i + ahead] - walk[i]) / np.sqrt(ahead) for i in range(origins + 40)]
        before = np.sort(np.concatenate(errors[:40]))
        labels = Labels.newest(np.concatenate(errors[40:]).tolist(), known.tolist())
        for each in (1.0, 1 / steps):
            past = Reference(before, np.full(len(before), 9 / len(before)), each)
            shares.append(covered(past, labels, follow(past, labels, [LEVEL])).mean())
    alone, together = np.reshape(shares, (20, 2)).mean(0)
    assert alone < 0.88
    assert together > alone + 0.015


def test_a_forecaster_counts_the_steps_of_its_horizon_as_one_row() -> None:
    assert PathCalibration(1.0, 0.0, 12, (1.0,), 9, 9.0).reference().per_label == 1 / 12
