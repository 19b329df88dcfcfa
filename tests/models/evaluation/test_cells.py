"""Quantiles of groups and sizes against the coverage that theory promises."""

import math

import numpy as np
import pytest
import torch

from models.evaluation.calibration import (
    LabelledMixture,
    NumberCalibration,
    fit_calibration,
)
from models.evaluation.cells import MAX_SCORES, Cells, fit_cells, fit_sizes
from models.evaluation.group_coverage import coverage_by_group, coverage_by_size, uncovered
from models.prediction.predictive import GaussianMixture

RANDOM = np.random.default_rng(21)


def _standard(means: torch.Tensor) -> GaussianMixture:
    return GaussianMixture(means.unsqueeze(0), torch.ones_like(means).unsqueeze(0))


def _labelled(rows: int, sizes: bool = False) -> LabelledMixture:
    """Rows predicted as N(m, 1) whose noise is ½ in group 0 and 2 in group 1, or grows with m."""
    groups = torch.from_numpy(RANDOM.integers(0, 2, rows))
    means = torch.from_numpy(RANDOM.uniform(0, 3, rows))
    scales = means + 0.2 if sizes else torch.where(groups == 0, 0.5, 2.0)
    targets = means + scales * torch.from_numpy(RANDOM.standard_normal(rows))
    return LabelledMixture(_standard(means), targets, None, 0, None if sizes else groups)


def _inside(calibration: object, one: LabelledMixture, groups: bool = True) -> torch.Tensor:
    assert isinstance(calibration, NumberCalibration)
    mixture = calibration.apply(one.mixture)
    ((lower, upper),) = calibration.intervals(mixture, [0.9], one.groups if groups else None)
    return (lower <= one.targets) & (one.targets <= upper)


def test_groups_of_unlike_noise_are_covered_alike() -> None:
    """One quantile covers all of the quiet and 80 % of the noisy rows: together 90 %.

    P(|N| < q/2) + P(|N| < 2q) = 1.8 of noises 1/2 and 2 gives 0.9998 and 0.80. 4,000 rows of each
    group have standard errors of 0.5 %; so do the quantiles of 2,000 calibration rows (0.7 %).
    """
    rows, new = _labelled(4_000), _labelled(8_000)
    assert new.groups is not None
    by_group = fit_calibration([rows], [rows], groups=2)
    marginal = fit_calibration([rows], [rows])
    for calibration, wanted in ((by_group, (0.9, 0.9)), (marginal, (1.0, 0.8))):
        inside = _inside(calibration, new)
        found = [float(inside[new.groups == group].double().mean()) for group in (0, 1)]
        assert found == pytest.approx(wanted, abs=0.03)


@pytest.mark.parametrize("rows", [9, 19, 30])
def test_a_group_is_covered_with_its_finite_rank(rows: int) -> None:
    """Over calibration sets coverage is k/(n + 1) exactly, whatever the other group does.

    2,000 sets with a new row each have a standard error of 0.7 %.
    """
    hits = []
    for _ in range(2_000):
        scores = torch.from_numpy(np.abs(RANDOM.standard_normal(rows + 41)))
        groups = torch.tensor([1] * rows + [0] * 40)
        cells = fit_cells(scores[:-1] * torch.where(groups == 1, 3.0, 1.0), groups, 2)
        hits.append(3 * float(scores[-1]) <= cells.quantiles(0.9, 1.6)[1])
    rank = math.ceil((rows + 1) * 0.9 - 1e-9)
    assert np.mean(hits) == pytest.approx(rank / (rows + 1), abs=0.027)


def test_a_small_group_takes_the_larger_of_its_largest_score_and_the_marginal_quantile() -> None:
    cells = Cells(((0.1, 0.2), (3.0,), ()), (2, 1, 0))
    assert cells.quantiles(0.9, 1.5) == [1.5, 3.0, 1.5]
    assert cells.quantiles(0.5, 1.5) == [0.2, 3.0, 1.5]  # 2 rows have a rank for 50 %: ⌈1.5⌉


def test_an_unknown_group_takes_the_marginal_quantile() -> None:
    calibration = NumberCalibration(1.0, (1.0,) * 19, 19, (), Cells(((5.0,) * 19,) * 2, (19, 19)))
    mixture = _standard(torch.zeros(3, dtype=torch.float64))
    ((_, upper),) = calibration.intervals(mixture, [0.9], torch.tensor([-1, 0, 1]))
    assert upper.tolist() == [1.0, 5.0, 5.0]
    ((_, upper),) = calibration.intervals(mixture, [0.9])
    assert upper.tolist() == [1.0, 1.0, 1.0]


def test_weighted_groups_are_those_of_repeated_rows() -> None:
    scores = torch.from_numpy(RANDOM.exponential(size=60))
    groups = torch.from_numpy(RANDOM.integers(-1, 2, 60))
    counts = torch.from_numpy(RANDOM.integers(1, 4, 60))
    weighted = fit_cells(scores, groups, 2, counts.double())
    repeated = fit_cells(*(v.repeat_interleave(counts) for v in (scores, groups)), 2)
    for level in (0.3, 0.8, 0.95):
        assert weighted.quantiles(level, 0.0) == pytest.approx(repeated.quantiles(level, 0.0))


def test_many_scores_of_a_group_are_thinned() -> None:
    scores = torch.from_numpy(RANDOM.exponential(size=5_000))
    cells = fit_cells(scores, torch.zeros(5_000, dtype=torch.long), 1)
    assert len(cells.scores[0]) == MAX_SCORES
    assert cells.rows == (5_000,)
    assert cells.quantiles(0.9, 0.0)[0] == float(scores.sort()[0][math.ceil(5_001 * 0.9) - 1])


def test_sizes_have_cells_where_one_quantile_does_not_cover_them_alike() -> None:
    """Noise that grows with the prediction; each third is then covered, and all rows are, too."""
    rows, new = _labelled(3_000, sizes=True), _labelled(6_000, sizes=True)
    calibration = fit_calibration([rows], [rows])
    assert isinstance(calibration, NumberCalibration)
    assert calibration.cells is not None
    assert calibration.cells.edges == pytest.approx((1, 2), abs=0.1)
    inside, thirds = _inside(calibration, new), new.mixture.mean().floor()  # type: ignore[operator]
    for third in range(3):
        assert float(inside[thirds == third].double().mean()) == pytest.approx(0.9, abs=0.03)
    widest = NumberCalibration(calibration.variance_scale, calibration.residuals, 3_000)
    alone = _inside(widest, new)
    assert float(alone[thirds == 0].double().mean()) > 0.99
    assert float(alone[thirds == 2].double().mean()) < 0.8


def test_sizes_have_no_cells_by_chance() -> None:
    """Where noise does not depend on the prediction, one table in a hundred has cells.

    Of 300 tables 3 ± 1.7; 9 are more than three standard errors above.
    """
    found = 0
    for _ in range(300):
        scores = torch.from_numpy(RANDOM.exponential(size=200))
        found += fit_sizes(scores, torch.from_numpy(RANDOM.standard_normal(200))) is not None
    assert found <= 9


def test_few_or_equal_predictions_have_no_cells_by_size() -> None:
    scores = torch.linspace(0, 5, 300, dtype=torch.float64)
    assert fit_sizes(scores, torch.zeros(300, dtype=torch.float64)) is None
    assert fit_sizes(scores[:50], scores[:50]) is None
    assert fit_sizes(scores, scores) is not None


def test_coverage_by_group_has_shares_errors_and_a_verdict() -> None:
    """Of group b 14 of 20 rows are inside: P(X ≤ 14) for Binomial(20, 0.9) is 0.0113.

    With a second group that is 0.0225, below 5 %. Group c has no rows and no test.
    """
    inside = torch.tensor([1.0] * 10 + [1.0] * 14 + [0.0] * 6)
    scores = {
        "group": torch.tensor([0.0] * 10 + [1.0] * 20),
        "coverage_0.9": torch.ones(30),
        "width_0.9": torch.ones(30),
        "conformal_coverage_0.9": inside,
        "conformal_width_0.9": torch.full((30,), 2.0),
    }
    found = coverage_by_group(scores, "place", ["a", "b", "c"])["coverage_by_group"]
    a, b, c = found["parts"]
    assert (a["rows"], b["rows"], c["rows"]) == (10, 20, 0)
    assert (a["conformal_coverage"], b["conformal_coverage"]) == pytest.approx((1.0, 0.7))
    assert b["p_value"] == pytest.approx(0.01125, abs=1e-5)
    assert (a["covered"], b["covered"], c["covered"]) == (True, False, None)
    assert b["conformal_coverage_error"] == pytest.approx(math.sqrt(2 / 3 * 1 / 3 / 20), rel=1e-3)
    assert b["width"] == pytest.approx(2)
    (sentence,) = uncovered({"coverage_by_group": found})
    assert sentence.startswith("place 'b' is not covered: 70 % of 20 held-out rows")


def test_coverage_by_size_is_that_of_thirds() -> None:
    predicted = torch.from_numpy(RANDOM.permutation(99)).double()
    scores = {
        "predicted": predicted,
        "coverage_0.9": (predicted < 66).double(),
        "width_0.9": predicted,
    }
    parts = coverage_by_size(scores)["coverage_by_size"]["parts"]
    assert [(p["name"], p["from"], p["to"]) for p in parts] == [
        ("low", 0, 32), ("middle", 33, 65), ("high", 66, 98),
    ]  # fmt: skip
    assert [p["coverage"] for p in parts] == [1, 1, 0]
    assert [p["width"] for p in parts] == pytest.approx([16, 49, 82])
    assert [p["covered"] for p in parts] == [True, True, False]
