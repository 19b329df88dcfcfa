"""Adaptive conformal inference: the paper's bound, and coverage when noise changes."""

import numpy as np
import pytest

from models.evaluation.adaptive import Labels, covered, follow, track
from models.evaluation.calibration import NumberCalibration
from models.evaluation.conformal_rank import Reference

LEVEL, LABELS, HALF = 0.9, 1000, 500
WINDOW = 200


def gaussian(rows: int, seed: int, scale: float | np.ndarray = 1.0) -> np.ndarray:
    """|y − mean| ÷ deviation where the deviation is `scale` times the predicted one."""
    return np.asarray(np.abs(scale * np.random.default_rng(seed).standard_normal(rows)))


@pytest.mark.parametrize("hostile", [False, True])
def test_misses_are_within_the_bound_of_the_paper(hostile: bool) -> None:
    """Proposition 4.1 of Gibbs and Candès holds for any sequence, so also for a hostile one."""
    needed = np.random.default_rng(0).random(400) ** 0.1
    if hostile:  # in turn, none is covered and all are
        needed = np.where(np.arange(400) // 100 % 2, 1.0, 0.0)
    for step, level in ((0.005, 0.9), (0.05, 0.5), (0.5, 0.99)):
        levels = track(needed, [level], [step])[:-1, 0]
        misses = (levels <= needed).mean()
        bound = (max(level, 1 - level) + step) / (step * 400)
        assert abs(misses - (1 - level)) <= bound


def test_coverage_is_restored_when_the_noise_doubles() -> None:
    """In every window of 200 rows within 8 points, after the change within 2 on average.

    The share in a window of independent rows would have the standard error 0.021.
    """
    calibration = Reference(np.sort(gaussian(200, 1)), np.ones(200))
    plain = NumberCalibration(1.0, tuple(calibration.scores), 200)
    local, after, of_conformal = [], [], []
    for seed in range(5):
        scores = gaussian(LABELS, 10 + seed, np.where(np.arange(LABELS) < HALF, 1.0, 2.0))
        labels = Labels.newest(scores.tolist(), range(LABELS))  # each before the next prediction
        inside = covered(calibration, labels, follow(calibration, labels, [LEVEL]))[:, 0]
        assert abs(inside.mean() - LEVEL) < 0.03
        local.append(np.convolve(inside, np.ones(WINDOW) / WINDOW, "valid"))
        after.append(inside[HALF + WINDOW // 2 :].mean())
        of_conformal.append((scores <= plain.score(LEVEL))[HALF:].mean())
    assert np.abs(np.mean(local, 0) - LEVEL).max() < 0.08
    assert np.mean(after) == pytest.approx(LEVEL, abs=0.02)
    assert np.mean(of_conformal) < 0.65
