"""Quantiles of groups and sizes against the coverage that theory promises."""

import math

import numpy as np
import pytest
import torch

from models.evaluation.calibration import LabelledMixture, NumberCalibration, fit_calibration
from models.evaluation.cells import By, fit_thirds
from models.evaluation.group_coverage import coverage_by_group, uncovered
from models.likelihoods.number_mixture import NumberMixture


def _standard(means: torch.Tensor) -> NumberMixture:
    return NumberMixture.gaussian(means.unsqueeze(0), torch.ones_like(means).unsqueeze(0))


def _labelled(rows: int, seed: int, *, sizes: bool = False) -> LabelledMixture:
    """Rows predicted as N(m, 1) whose noise is ½ in group 0 and 2 in group 1, or grows with m."""
    random = np.random.default_rng(seed)
    groups = torch.from_numpy(random.integers(0, 2, rows))
    means = torch.from_numpy(random.uniform(0, 3, rows))
    scales = means + 0.2 if sizes else torch.where(groups == 0, 0.5, 2.0)
    targets = means + scales * torch.from_numpy(random.standard_normal(rows))
    return LabelledMixture(_standard(means), targets, None, 0, None if sizes else groups)


def _inside(calibration: object, one: LabelledMixture) -> torch.Tensor:
    mixture = calibration.apply(one.mixture)
    ((lower, upper),) = calibration.intervals(mixture, [0.9], one.groups)
    return (lower <= one.targets) & (one.targets <= upper)


def test_groups_of_unlike_noise_are_covered_alike() -> None:
    """One quantile covers all of the quiet and 80 % of the noisy rows: together 90 %.

    P(|N| < q/2) + P(|N| < 2q) = 1.8 of noises 1/2 and 2 gives 0.9998 and 0.80. 4,000 rows of each
    group have standard errors of 0.5 %; so do the quantiles of 2,000 calibration rows (0.7 %).
    """
    rows, new = _labelled(4_000, 0), _labelled(8_000, 1)
    by_group = fit_calibration([rows], [rows], groups=2)
    marginal = fit_calibration([rows], [rows])
    for calibration, wanted in ((by_group, (0.9, 0.9)), (marginal, (1.0, 0.8))):
        inside = _inside(calibration, new)
        found = [float(inside[new.groups == group].double().mean()) for group in (0, 1)]
        assert found == pytest.approx(wanted, abs=0.03)


def test_sizes_have_cells_where_one_quantile_does_not_cover_them_alike() -> None:
    """Noise that grows with the prediction; each third is then covered, and all rows are, too."""
    rows, new = _labelled(3_000, 0, sizes=True), _labelled(6_000, 1, sizes=True)
    calibration = fit_calibration([rows], [rows])
    assert calibration.cells.edges == pytest.approx((1, 2), abs=0.1)
    inside, thirds = _inside(calibration, new), new.mixture.mean().floor()  # type: ignore[operator]
    for third in range(3):
        assert float(inside[thirds == third].double().mean()) == pytest.approx(0.9, abs=0.03)
    widest = NumberCalibration(calibration.variance_scale, calibration.residuals, 3_000)
    alone = _inside(widest, new)
    assert float(alone[thirds == 0].double().mean()) > 0.99
    assert float(alone[thirds == 2].double().mean()) < 0.8


def test_deviations_have_cells_where_one_quantile_does_not_cover_them_alike() -> None:
    """Noise of .6 to 1.4 whose logarithm is said to vary three times as much: by its thirds.

    Means tell nothing of it, so that the cells are by deviation, and each third is covered.
    """

    def labelled(rows: int, seed: int) -> LabelledMixture:
        random = np.random.default_rng(seed)
        means, logs = random.standard_normal(rows), random.uniform(-0.5, 0.35, rows)
        said = torch.from_numpy(np.exp(6 * logs)).unsqueeze(0)  # variances
        targets = torch.from_numpy(means + np.exp(logs) * random.standard_normal(rows))
        mixture = NumberMixture.gaussian(torch.from_numpy(means).unsqueeze(0), said)
        return LabelledMixture(mixture, targets, None)

    rows, new = labelled(3_000, 0), labelled(6_000, 1)
    calibration = fit_calibration([rows], [rows])
    assert calibration.describe()["conditional_on"] == "deviation"
    inside = _inside(calibration, new)
    thirds = new.mixture.total().argsort().tensor_split(3)  # type: ignore[union-attr]
    for third in thirds:
        assert float(inside[third].double().mean()) == pytest.approx(0.9, abs=0.03)


def test_thirds_have_no_cells_by_chance() -> None:
    """Where noise does not depend on the prediction, one table in a hundred has cells.

    Of 300 tables 3 ± 1.7; 9 are more than three standard errors above.
    """
    random, found = np.random.default_rng(0), 0
    for _ in range(300):
        scores = torch.from_numpy(random.exponential(size=200))
        means = torch.from_numpy(random.standard_normal(200))
        deviations = torch.from_numpy(random.exponential(size=200))
        values: dict[By, torch.Tensor] = {"size": means, "deviation": deviations}
        found += fit_thirds(scores, values, torch.ones_like(scores)) is not None
    assert found <= 9


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
    assert "place 'b'" in sentence
