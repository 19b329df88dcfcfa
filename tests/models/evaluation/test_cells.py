"""Coverage by cell, of sets of classes and of paths."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from models.evaluation.calibration import LabelledMixture, NumberCalibration, fit_calibration
from models.evaluation.cells import By, fit_thirds
from models.evaluation.class_sets import (
    Penalty,
    RankedClasses,
    SetCalibration,
    choose_penalty,
    fit_sets,
)
from models.evaluation.group_coverage import coverage_by_group, uncovered
from models.evaluation.path_calibration import PathCalibration, Worth, fit_scales, progress
from models.forecasting.forecast import Forecast
from models.forecasting.observation import PLAIN
from models.forecasting.rollout import Paths
from models.forecasting.worth import Overlaps
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


LEVELS = (0.5, 0.8, 0.9, 0.95)


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _probabilities(rows: int, classes: int, seed: int, sharpness: float = 2.0) -> Tensor:
    logits = torch.randn(rows, classes, generator=_seeded(seed), dtype=torch.float64)
    return (sharpness * logits).softmax(-1)


def _labels(probabilities: Tensor, seed: int) -> Tensor:
    return torch.multinomial(probabilities, 1, generator=_seeded(seed)).squeeze(1)


def _covered(sets: SetCalibration, probabilities: Tensor, targets: Tensor, level: float) -> Tensor:
    ranked = RankedClasses.of(probabilities)
    return ranked.ranks(targets) <= sets.sizes(ranked, level)


def test_a_credible_set_is_the_smallest_that_reaches_the_level() -> None:
    probabilities = _probabilities(50, 5, 0)
    ranked = RankedClasses.of(probabilities)
    for level in LEVELS:
        for row, size in zip(probabilities, ranked.credible_sizes(level).tolist(), strict=True):
            sums = row.sort(descending=True).values.cumsum(0)
            assert sums[size - 1] >= level
            assert size == 1 or sums[size - 2] < level


def test_conformal_sets_cover_the_level_whatever_the_probabilities() -> None:
    """⌈(n + 1) · level⌉ ÷ (n + 1) on average over calibrations; within three standard errors."""
    pairs, rows, new, level = 100, 99, 200, 0.9
    true = _probabilities(pairs * (rows + new), 6, 1, sharpness=1.0)
    targets = _labels(true, 2).view(pairs, -1)
    told = true.pow(3.0)
    told = (told / told.sum(-1, keepdim=True)).view(pairs, rows + new, 6)
    covered = []
    for p, y in zip(told, targets, strict=True):
        sets = fit_sets(p[:rows], y[:rows], torch.ones(rows).double())
        covered.append(float(_covered(sets, p[rows:], y[rows:], level).double().mean()))
    ranked = 79  # of the 99 rows, as 20 choose the penalty
    exact = math.ceil((ranked + 1) * level - 1e-9) / (ranked + 1)
    error = float(np.std(covered)) / math.sqrt(pairs)
    assert np.mean(covered) == pytest.approx(exact, abs=3 * error)


def test_a_tail_that_says_nothing_is_penalised() -> None:
    """Half of the rows are sure of one class, but told a half for 30 others (the papers' case).

    The other half's sets of 90 % need four classes, with 0.75 before the fourth. Without a penalty
    the sure rows' sets have all that comes before 0.75, too: about half of the tail.
    """
    random, rows = _seeded(8), 2_000
    tail = 0.5 * torch.rand(rows, 30, generator=random, dtype=torch.float64).softmax(-1)
    sure = torch.cat([torch.full((rows, 1), 0.5), tail], -1)
    plain = torch.tensor([0.3, 0.25, 0.2, 0.15, 0.1]).double() + 1e-3 * tail[:, :5]
    plain = torch.nn.functional.pad(plain / plain.sum(-1, keepdim=True), (0, 26))
    is_sure = torch.arange(rows) // 2 % 2 == 0
    told = torch.where(is_sure.unsqueeze(-1), sure, plain)
    targets, ones = torch.where(is_sure, 0, _labels(plain, 9)), torch.ones(1_000).double()
    penalty = choose_penalty(told[:1_000], targets[:1_000], ones)
    assert penalty.weight > 0
    told, targets = told[1_000:], targets[1_000:]
    ranked = RankedClasses.of(told)
    without = Penalty().calibrated(ranked, targets, ones).sizes(ranked, 0.9).double().mean()
    regular = penalty.calibrated(ranked, targets, ones)
    assert regular.sizes(ranked, 0.9).double().mean() < 0.6 * without
    share = _covered(regular, told, targets, 0.9).double().mean()
    assert 0.9 <= float(share) < 0.93


HORIZON = 6


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize(
    ("series", "firsts", "horizon", "expected"),
    [
        ([0, 0, 0], [5, 6, 7], 1, 3.0),  # steps of their own
        ([0], [5], 2, 4 / 3),  # ρ² = 1/2 between its steps: 4 ÷ (2 + 2 · 1/2)
        ([0, 0], [5, 7], 2, 8 / 3),  # a horizon apart
        ([0, 0], [5, 6], 2, 16 / 7.5),  # the second of one and the first of the other share a step
    ],
)
def test_errors_that_share_steps_count_less(
    series: list[int], firsts: list[int], horizon: int, expected: float
) -> None:
    found = Overlaps(np.array(series), np.array(firsts), horizon).worth().together
    assert found == pytest.approx(expected)


def test_scales_that_grow_with_the_step_are_found() -> None:
    """c_h = 0.5 · 6^(g_h): 4,000 forecasts tell log c to some hundredths.

    Their errors count tenfold, so that the prior does not show.
    """
    c = 0.5 * torch.exp(math.log(6) * progress(HORIZON, HORIZON))
    found = fit_scales(c.sqrt() * randn(4_000, HORIZON), 40_000.0)
    assert math.log(found.scale) == pytest.approx(math.log(0.5), abs=0.08)
    assert found.growth == pytest.approx(math.log(6), abs=0.12)
    torch.testing.assert_close(found.factors(HORIZON), c, rtol=0.1, atol=0)
    assert found.factors(9)[6:].tolist() == [found.factors(HORIZON)[-1].item()] * 3


def _forecast(origins: int, seed: int) -> tuple[Forecast, Tensor]:
    """Forecasts of standard deviation 1 of errors whose deviation rises from 1 to 2 by the step."""
    centre = 3 * randn(1, 1, origins, HORIZON, seed=seed)
    means = centre + 0.1 * randn(50, 4, origins, HORIZON, seed=seed + 1)
    variances = torch.full_like(means, 0.99)
    values = means + variances.sqrt() * randn(*means.shape, seed=seed + 2)
    deviation = torch.linspace(1, 2, HORIZON).double()
    targets = centre[0, 0] + deviation * randn(origins, HORIZON, seed=seed + 3)
    return Forecast(Paths(values, means, variances, means), PLAIN), targets.flatten()


def test_calibrated_intervals_hold_fresh_errors() -> None:
    """Errors of up to twice the predicted size: 90 % intervals hold 75 % of them before, then 90 %.

    400 forecasts calibrate: the shares of 2,400 fresh steps have a standard error of 0.6 points,
    and the scale's own error is about a point.
    """
    forecast, targets = _forecast(400, 10)
    calibration = forecast.fit_calibration(targets, Worth(400.0))
    fresh, truth = _forecast(400, 50)
    scores = Forecast(fresh.drawn, PLAIN, calibration).scores(truth)
    share = {name: float(values.mean()) for name, values in scores.items()}
    assert share["uncalibrated_coverage_0.9"] < 0.8
    assert share["coverage_0.9"] == pytest.approx(0.9, abs=0.03)
    assert share["conformal_coverage_0.9"] == pytest.approx(0.9, abs=0.03)
    assert share["log_likelihood"] > share["uncalibrated_log_likelihood"]
    last = truth.new_tensor(range(len(truth))) % HORIZON == HORIZON - 1
    assert float(scores["coverage_0.9"][last].mean()) == pytest.approx(0.9, abs=0.05)


def test_a_step_with_errors_of_its_own_shape_is_covered_if_it_has_enough_of_them() -> None:
    """Step 3 has errors three times as large, which no scale that grows with the step can follow.

    200 errors tell a coverage to 2 points, and 20,000 fresh ones more exactly.
    """
    deviation = torch.tensor([1.0, 1, 3, 1, 1, 1]).double()
    fitted = fit_scales(deviation * randn(200, HORIZON, seed=3), 200.0)
    errors = deviation * randn(200, HORIZON, seed=3) / fitted.factors(HORIZON).sqrt()
    fresh = deviation * randn(20_000, HORIZON, seed=4) / fitted.factors(HORIZON).sqrt()
    pooled = fitted.ranked(errors.abs())
    own = fitted.ranked(errors.abs(), (200.0,) * HORIZON)
    some = fitted.ranked(errors.abs(), (200.0,) * 2 + (8.9,) * (HORIZON - 2))

    def covered(one: PathCalibration) -> list[float]:
        return (fresh.abs() <= one.half_widths(0.9, HORIZON)).double().mean(0).tolist()

    assert covered(pooled)[2] < 0.75
    assert covered(own) == pytest.approx([0.9] * HORIZON, abs=0.06)
    assert covered(some)[:2] == covered(own)[:2]
    assert some.half_widths(0.9, HORIZON)[3:].tolist() == [float(pooled.half_widths(0.9, 1))] * 3
    beyond = own.half_widths(0.9, 8)
    assert beyond[6:].tolist() == [beyond[5]] * 2
