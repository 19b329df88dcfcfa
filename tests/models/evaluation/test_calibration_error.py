"""Calibration errors of classifiers whose truth is known."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from models.evaluation.calibration_error import (
    Bin,
    CalibrationError,
    equal_counts,
    equal_widths,
    expected_calibration_error,
)
from models.evaluation.chance import Chance

REPETITIONS = 200


def draw(
    rows: int, generator: np.random.Generator, shift: float = 0.0
) -> tuple[Float[Tensor, "rows"], Float[Tensor, "rows"]]:
    """Confidences, and labels that are right with that probability less `shift`."""
    confidence = 0.5 + 0.5 * generator.beta(2, 1, rows)
    correct = generator.random(rows) < confidence - shift
    return torch.from_numpy(confidence), torch.from_numpy(correct.astype(float))


def repeated(
    rows: int, bins: Callable[..., Iterable[Bin]], shift: float = 0.0
) -> list[CalibrationError]:
    generator = np.random.default_rng(rows)
    drawn = [draw(rows, generator, shift) for _ in range(REPETITIONS)]
    return [expected_calibration_error(p, c, bins(p)) for p, c in drawn]


@pytest.mark.parametrize("bins", [equal_widths, equal_counts])
@pytest.mark.parametrize("rows", [30, 100, 1000])
def test_a_perfect_classifier_has_the_expected_error_and_0_without_chance(
    rows: int, bins: Callable[..., Iterable[Bin]]
) -> None:
    """Means of 200 repetitions: within four of their standard errors, 1 in 16,000 by chance."""
    found = repeated(rows, bins)
    beyond = np.array([one.raw - one.expected for one in found])
    debiased = np.array([one.debiased for one in found])
    for values in (beyond, debiased):
        assert abs(values.mean()) < 4 * values.std() / REPETITIONS**0.5
    assert np.mean([one.raw for one in found]) > 0.6 * (1 / rows) ** 0.5  # it is all chance
    stated = np.mean([one.standard_error for one in found])
    # Each |gap| varies less than the gap: debiased by √0.835 of it if the gap is Gaussian.
    assert 0.75 < debiased.std() / stated < 1.1


def test_where_all_gaps_are_large_nothing_is_subtracted() -> None:
    """Right with 0.4 less than stated: gaps of at least 4 deviations in nearly all bins."""
    found = repeated(2_000, equal_counts, shift=0.4)
    debiased = np.array([one.debiased for one in found])
    raw = np.array([one.raw for one in found])
    assert raw.mean() == pytest.approx(0.4, abs=0.005)
    assert debiased.mean() == pytest.approx(0.4, abs=0.005)
    stated = np.mean([one.standard_error for one in found])
    assert stated == pytest.approx(debiased.std(), rel=0.25)


@pytest.mark.parametrize("shift", [0.03, 0.08])
@pytest.mark.parametrize("rows", [30, 300])
def test_in_between_it_is_too_low_by_no_more_than_stated(rows: int, shift: float) -> None:
    """The truth of a shift is the shift; by 0.58 of the expected error, and the raw is above."""
    found = repeated(rows, equal_counts, shift)
    debiased, expected, raw = (
        np.array([getattr(one, name) for one in found]) for name in ("debiased", "expected", "raw")
    )
    chance = 4 * debiased.std() / REPETITIONS**0.5
    assert shift - 0.58 * expected.mean() - chance < debiased.mean() < shift + chance
    assert raw.mean() > shift - chance


@pytest.mark.parametrize("wrong", [0.05, 0.4, 0.9])
@pytest.mark.parametrize("rows", [1, 2, 20, 150])
def test_chance_is_that_of_the_poisson_binomial_distribution(rows: int, wrong: float) -> None:
    """Its probabilities by convolution, term by term."""
    generator = np.random.default_rng(0)
    q = np.clip(wrong * generator.uniform(0.5, 1.5, rows), 0, 0.95)
    probability = np.ones(1)
    for one in q:
        probability = np.convolve(probability, [1 - one, one])
    away, variance = np.arange(rows + 1) - q.sum(), (q * (1 - q)).sum()
    found = Chance.of(1 - q, np.ones(rows))
    # 0.4 % where the Gaussian stands in for it
    assert found.size == pytest.approx(probability @ abs(away), rel=4e-3)
    damping = probability @ np.exp(-0.5 * away**2 / variance)
    assert found.damping == pytest.approx(damping, rel=4e-3)


@pytest.mark.parametrize("bins", [equal_widths, equal_counts])
@pytest.mark.parametrize("rows", [20, 2000])
def test_a_row_of_weight_3_is_three_rows_and_one_of_weight_0_is_none(
    rows: int, bins: Callable[..., Iterable[Bin]]
) -> None:
    generator = np.random.default_rng(0)
    confidence, correct = draw(rows, generator)
    counts = torch.from_numpy(generator.integers(0, 4, rows))
    weighted = expected_calibration_error(confidence, correct, bins(confidence, counts.double()))
    many, right = (one.repeat_interleave(counts) for one in (confidence, correct))
    same = expected_calibration_error(many, right, bins(many))
    for name in ("raw", "expected", "debiased", "standard_error"):
        assert getattr(weighted, name) == pytest.approx(getattr(same, name), rel=1e-9)


def test_certainty_leaves_nothing_to_chance() -> None:
    """A model that is certain and wrong once in four rows has an error of ¼."""
    sure, right = torch.ones(4).double(), torch.tensor([1.0, 1, 1, 0]).double()
    found = expected_calibration_error(sure, right, equal_widths(sure))
    assert (found.raw, found.expected, found.debiased) == (0.25, 0.0, 0.25)
