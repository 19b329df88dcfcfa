"""P(y > t) of mixtures: closed forms, tails, atoms and whole numbers."""

import numpy as np
import pytest
import torch
from scipy import stats

from models.evaluation.calibration import NumberCalibration
from models.likelihoods.families import Family, Logistic, Normal, Student, TabulatedStudent
from models.prediction.answers import exceeds
from models.prediction.answers.exceeds import Exceedance
from models.prediction.influence import ERROR
from models.prediction.mc_error import worst_error
from models.prediction.options import Costs, Density, PredictOptions
from models.prediction.predictive import GaussianMixture
from models.prediction.work import values_per_row, values_per_sample
from tests.models.prediction.shaped_cases import CASES, ROWS, Case

MEANS = torch.tensor([[0.0, 1.0], [2.0, 5.0]], dtype=torch.float64)
VARIANCES = torch.tensor([[1.0, 4.0], [9.0, 1.0]], dtype=torch.float64)


def test_the_probability_is_the_mean_of_the_components_survival_functions() -> None:
    """To 1e-12 of itself, also where it is 1e-100 and 1 − cdf would be 0."""
    options = PredictOptions(exceeds=(-1.0, 3.0, 12.0, 60.0))
    found = exceeds.of_mixture(GaussianMixture(MEANS, VARIANCES), options, None)["probabilities"]
    deviations = VARIANCES.sqrt().numpy()
    expected = [stats.norm.sf(t, MEANS.numpy(), deviations).mean(0) for t in options.exceeds]
    np.testing.assert_allclose(found.numpy(), np.stack(expected, axis=-1), rtol=1e-12)
    assert float(found[1, -1]) < 1e-100


@pytest.mark.parametrize("dof", [2.1, 3.0, 14.5, 100.0])
def test_student_keeps_the_digits_of_its_tails(dof: float) -> None:
    t = torch.linspace(-30, 30, 601, dtype=torch.float64)
    family = Student(torch.tensor([dof], dtype=torch.float64))
    tabulated = TabulatedStudent.of(Student(torch.tensor([[[dof]]], dtype=torch.float64)))
    expected = stats.t.sf(t.numpy(), dof)
    np.testing.assert_allclose(family.survival(t).numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(tabulated.survival(t).flatten().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("family", "truth"), [(Normal(), stats.norm), (Logistic(), stats.logistic)]
)
def test_families_keep_the_digits_of_their_tails(family: Family, truth: stats.norm) -> None:
    t = torch.linspace(-36, 36, 601, dtype=torch.float64)
    np.testing.assert_allclose(family.survival(t).numpy(), truth.sf(t.numpy()), rtol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shaped_mixtures_exceed_what_they_are_not_up_to(case: Case) -> None:
    """1 − P(Y ≤ t) by scipy, at thresholds on atoms, whole numbers, bounds and outside them."""
    y = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 3.5, 7.0, 12.0, 29.5, 30.0, 31.0])
    found = case.mixture.survival(torch.from_numpy(y).unsqueeze(-1).expand(-1, ROWS))
    for row in range(ROWS):
        np.testing.assert_allclose(found[:, row].numpy(), 1 - case.cdf(y, row), atol=2e-7)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_never_increases_with_the_threshold(case: Case) -> None:
    y = torch.linspace(-2, 32, 2001, dtype=torch.float64).unsqueeze(-1).expand(-1, ROWS)
    found = case.mixture.survival(y)
    assert bool((found.diff(dim=0) <= 0).all())
    assert bool(((found >= 0) & (found <= 1)).all())


def test_whole_numbers_and_atoms_do_not_exceed_themselves() -> None:
    counts = Case("log", "normal", 2, (0.0,), integer=True).mixture
    y = torch.tensor([[2.0], [2.5], [2.999], [3.0], [3.2]], dtype=torch.float64).expand(-1, ROWS)
    found = counts.survival(y)
    for same in ((0, 2), (1, 2), (3, 4)):
        assert torch.equal(found[same[0]], found[same[1]])
    three = counts.log_prob(torch.full((ROWS,), 3.0, dtype=torch.float64)).exp()
    torch.testing.assert_close(found[2] - found[3], three, rtol=1e-9, atol=1e-12)

    zeros = Case("bounded", "normal", 2, (0.0,)).mixture
    y = torch.tensor([[-1e-9], [0.0]], dtype=torch.float64).expand(-1, ROWS)
    below, at = zeros.survival(y)
    torch.testing.assert_close(below, torch.ones_like(below))
    torch.testing.assert_close(below - at, zeros.atoms.mean(0)[0], rtol=1e-9, atol=1e-12)


def test_thresholds_keep_the_order_of_the_request_and_may_repeat() -> None:
    options = PredictOptions(exceeds=(3.0, -1.0, 3.0))
    found = exceeds.of_mixture(GaussianMixture(MEANS, VARIANCES), options, None)["probabilities"]
    assert torch.equal(found[:, 0], found[:, 2])
    assert bool((found[:, 1] > found[:, 0]).all())


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_the_stated_error_is_that_of_repeated_samples(scale: float) -> None:
    """Posterior means N(0, 1) with noise 1, and a calibration that scales both about their mean.

    The standard deviation of 600 repetitions is known to 3 %, so that five of them are 15 %.
    """
    random = torch.Generator().manual_seed(0)
    options = PredictOptions(exceeds=(-2.0, 0.5, 3.0), return_mc_errors=True)
    means = torch.randn(40, 600, generator=random, dtype=torch.float64)
    raw = GaussianMixture(means, torch.ones_like(means))
    mixture = NumberCalibration(scale, (), 10).apply(raw)
    assert isinstance(mixture, GaussianMixture)
    found = exceeds.of_mixture(mixture, options, None)
    stated = exceeds.errors(mixture, raw, found, options, lambda v: v.std(0) / len(v) ** 0.5)
    actual = found["probabilities"].std(0)
    each = torch.stack([stated[f"exceeds_{t}"].square().mean().sqrt() for t in options.exceeds])
    torch.testing.assert_close(each, actual, rtol=0.15, atol=0)


def test_rows_are_cut_and_joined() -> None:
    whole = Exceedance((1.0, 2.0), np.arange(6.0).reshape(3, 2))
    parts = [whole.select(slice(0, 1)), whole.select(slice(1, 3))]
    np.testing.assert_array_equal(Exceedance.joined(parts).probabilities, whole.probabilities)
    assert list(whole.columns()) == ["exceeds_1.0", "exceeds_2.0"]


def test_a_wanted_accuracy_is_that_of_probabilities_and_quantiles_too() -> None:
    """Not that of a density, whose unit is 1 ÷ that of the target."""
    summary = {f"{ERROR}mean": np.array([0.1]), f"{ERROR}density": np.array([[9.0, 8.0]])}
    assert worst_error(summary) == 0.1
    assert worst_error(summary | {f"{ERROR}exceeds_3.0": np.array([0.2])}) == 0.2
    assert worst_error(summary | {f"{ERROR}quantile_0.9": np.array([0.3])}) == 0.3


@pytest.mark.parametrize(
    ("options", "work"),
    [
        (PredictOptions(), 1),
        (PredictOptions(exceeds=tuple(map(float, range(16)))), 1),
        (PredictOptions(intervals=(0.5, 0.9)), 1),
        (PredictOptions(quantiles=tuple(i / 100 for i in range(1, 100))), 17),
        (PredictOptions(density=Density(64)), 6),
        (PredictOptions(density=Density(512), samples=1), 1024),
        (PredictOptions(intervals=tuple(i / 17 for i in range(1, 17))), 6),
        (PredictOptions(return_draws=True), 2),
        (PredictOptions(return_mc_errors=True), 1),
    ],
)
def test_answers_count_as_work(options: PredictOptions, work: int) -> None:
    assert abs(values_per_sample(options) - work) <= 1


def test_actions_and_draws_of_classes_count_as_work() -> None:
    costs = Costs(matrix=((1.0,) * 50,) * 20)
    assert values_per_sample(PredictOptions(), 50) == 1
    assert values_per_sample(PredictOptions(target_mc_error=0.1), 50) == 3
    assert values_per_sample(PredictOptions(costs=costs), 50) == 3
    assert values_per_sample(PredictOptions(return_draws=True), 50) == 26


def test_the_numbers_of_an_answer_are_counted() -> None:
    options = PredictOptions(
        samples=30, return_draws=True, intervals=(0.5, 0.9), exceeds=(1.0,), quantiles=(0.1, 0.2)
    )
    assert values_per_row(options) == 30 + 2 * 2 * 2 + 1 + 2
    assert values_per_row(PredictOptions(density=Density(64), intervals=())) == 128
    assert values_per_row(options, classes=3) == 3 + 3 * 30
