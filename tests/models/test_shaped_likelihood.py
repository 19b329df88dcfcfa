"""Shaped likelihoods: families against scipy, gradients, the loss against the served densities."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from models.likelihoods.families import Family, Logistic, Normal, Student, TabulatedStudent
from models.likelihoods.shaped import MAX_SCALE, MIN_SCALE, Bounded
from tests.models.prediction.shaped_cases import CASES, SAMPLES, Case

DOF = 4.5
FAMILIES = [
    pytest.param(Normal(), stats.norm(), id="normal"),
    pytest.param(Logistic(), stats.logistic(), id="logistic"),
    pytest.param(Student(torch.tensor(DOF).double()), stats.t(DOF), id="student"),
]
T = torch.linspace(-12, 12, 97, dtype=torch.float64)


@pytest.mark.parametrize(("family", "reference"), FAMILIES)
def test_families_are_scipys(family: Family, reference: stats.rv_continuous) -> None:
    t = T.numpy()
    np.testing.assert_allclose(family.log_prob(T), reference.logpdf(t), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(family.density(T), reference.pdf(t), rtol=1e-9, atol=1e-15)
    # Student's function is a quadrature, good to 1e-7 relative to a tail.
    np.testing.assert_allclose(family.cdf(T), reference.cdf(t), rtol=1e-6, atol=1e-13)
    np.testing.assert_allclose(family.log_cdf(T), reference.logcdf(t), rtol=1e-6, atol=1e-9)
    assert float(family.variance) == pytest.approx(reference.var())
    for tail in (1e-6, 0.01, 0.4):
        bound = float(family.tail_bound(torch.tensor([tail], dtype=torch.float64)))
        assert reference.sf(bound) <= tail * (1 + 1e-6)


@pytest.mark.parametrize(("family", "reference"), FAMILIES)
@pytest.mark.parametrize("width", [1e-5, 0.01, 0.3, 4.0])
def test_intervals_have_the_difference_of_the_distribution_functions(
    family: Family, reference: stats.rv_continuous, width: float
) -> None:
    """Far in the tails, too, where plain differences are 0: there by symmetry of the lower one."""
    low, high = T - 0.5 * width, T + 0.5 * width
    never, always = torch.zeros_like(T, dtype=torch.bool), torch.ones_like(T, dtype=torch.bool)
    inside = family.log_interval(low, high, never, never)
    a, b = -np.abs(T.numpy()) - 0.5 * width, -np.abs(T.numpy()) + 0.5 * width
    expected = np.log(reference.cdf(b) - reference.cdf(a))
    if width < 1e-3:  # scipy's difference loses digits: density × width is exact to width²
        expected = reference.logpdf(T.numpy()) + math.log(width)
    np.testing.assert_allclose(inside, expected, rtol=1e-3, atol=2e-3)
    np.testing.assert_allclose(
        family.log_interval(low, high, always, never), reference.logcdf(high), rtol=1e-6, atol=1e-9
    )
    np.testing.assert_allclose(
        family.log_interval(low, high, never, always), reference.logsf(low), rtol=1e-6, atol=1e-9
    )


def test_the_table_of_students_distribution_function_is_exact_to_a_millionth() -> None:
    dof = torch.tensor([2.1, 7.0, 7.0, 100.0]).double().unsqueeze(1).unsqueeze(1)
    table = TabulatedStudent.of(Student(dof))
    t = torch.linspace(-300, 300, 3001, dtype=torch.float64)
    found = table.cdf(t.view(1, 1, -1).expand(4, 1, -1))
    for values, nu in zip(found[:, 0], dof.flatten().tolist(), strict=True):
        np.testing.assert_allclose(values, stats.t(nu).cdf(t.numpy()), atol=1e-6)
    assert len(table.values) == 3  # one row for equal degrees of freedom
    two = table.of_samples(slice(0, 2))
    torch.testing.assert_close(two.cdf(t.view(1, 1, -1).expand(2, 1, -1)), found[:2])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_loss_is_the_served_log_density_without_its_jacobian(case: Case) -> None:
    """Of one draw: the mixture adds log |dz/dy| to a density, nothing to a probability."""
    y = torch.tensor([0.0, 2.0, 7.0]).double()
    for sample in range(SAMPLES):
        point = {name: value[sample : sample + 1] for name, value in case.point.items()}
        outputs = case.outputs[sample : sample + 1]
        loss = case.likelihood.log_prob(outputs, y, point)[0]
        parts = case.likelihood.parts(outputs, point)
        served = type(case.mixture).of(case.target, parts, case.likelihood.location_bounds)
        found = served.log_prob(y)
        expected = loss + case.target.log_derivative(y)
        # The served distribution function of Student's t is a table, good to 1e-6.
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_are_finite_differences(case: Case) -> None:
    point = {name: value[:1].clone().requires_grad_() for name, value in case.point.items()}
    outputs = case.outputs[:1].clone().requires_grad_()
    y = torch.tensor([0.0, 2.0, 7.0]).double()

    def loss(outputs: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        return case.likelihood.log_prob(outputs, y, dict(zip(point, values, strict=True)))

    # Student's narrow intervals are density × width, wide ones a quadrature: equal to 1e-6.
    torch.autograd.gradcheck(loss, (outputs, *point.values()), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_extreme_outputs_have_a_finite_loss_and_gradient_in_float32(case: Case) -> None:
    """Where an optimiser may be for a moment; the targets are as far away as a training row."""
    y = torch.tensor([0.0, 2.0, 29.0]).double()
    for size in (-1e4, -30.0, 30.0, 1e4):
        shape = (1, 3, case.likelihood.num_outputs)
        outputs = torch.full(shape, size, requires_grad=True)
        point = {"dof": torch.full((1, 1), size)} if case.family == "student" else {}
        loss = case.likelihood.log_prob(outputs, y, point)
        loss.sum().backward()
        assert outputs.grad is not None
        assert bool(loss.isfinite().all())
        assert bool(outputs.grad.isfinite().all())


def test_bounds_keep_a_gradient_and_are_smooth() -> None:
    bounded = Bounded(-2.0, -1.0, 1.0, 4.0)
    x = torch.linspace(-3, 6, 1801, dtype=torch.float64, requires_grad=True)
    y = bounded(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert bool((slope > 0).all())
    assert bool((slope.diff().abs() < 0.01).all())
    torch.testing.assert_close(y[400:801], x[400:801])
    assert -2 < y.min().item() < y.max().item() < 4


def test_scales_stay_between_their_bounds_and_components_begin_apart() -> None:
    case = Case("log", "logistic", 3)
    for size in (-1e6, 1e6):
        scales = case.likelihood.parts(torch.full((1, 1, 9), size), {}).log_scales.exp()
        assert MIN_SCALE * 0.999 <= float(scales.min()) <= float(scales.max()) <= MAX_SCALE * 1.001
    start = case.likelihood.parts(torch.zeros(1, 1, 9), {}).locs[0, 0]
    assert bool((start.diff() > 0.5).all())
    assert case.likelihood.noise_outputs == tuple(range(3, 9))
