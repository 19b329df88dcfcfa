"""Shaped likelihoods: families against scipy, gradients, the loss against the served densities."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from models.config import LikelihoodConfig
from models.config.model import ShapedKind
from models.features.target_shapes import describe_target
from models.likelihoods import build_likelihood
from models.likelihoods.families import Family, Logistic, Normal
from tests.models.prediction.shaped_cases import CASES, SAMPLES, Case

FAMILIES = [
    pytest.param(Normal(), stats.norm(), id="normal"),
    pytest.param(Logistic(), stats.logistic(), id="logistic"),
]
T = torch.linspace(-12, 12, 97, dtype=torch.float64)


@pytest.mark.parametrize(("family", "reference"), FAMILIES)
def test_families_are_scipys(family: Family, reference: stats.rv_continuous) -> None:
    t = T.numpy()
    np.testing.assert_allclose(family.log_prob(T), reference.logpdf(t), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(family.density(T), reference.pdf(t), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(family.cdf(T), reference.cdf(t), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(family.log_cdf(T), reference.logcdf(t), rtol=1e-12, atol=1e-12)
    assert float(family.variance) == pytest.approx(reference.var())
    for tail in (1e-6, 0.01, 0.4):
        bound = float(family.tail_bound(torch.tensor([tail], dtype=torch.float64)))
        assert reference.sf(bound) <= tail * (1 + 1e-6)


@pytest.mark.parametrize(("family", "reference"), FAMILIES)
@pytest.mark.parametrize("width", [1e-5, 0.3, 4.0])
def test_intervals_are_exact(family: Family, reference: stats.rv_continuous, width: float) -> None:
    """Far in the tails, too, where plain differences are 0: there by symmetry of the lower one."""
    low, high = T - 0.5 * width, T + 0.5 * width
    never, always = torch.zeros_like(T, dtype=torch.bool), torch.ones_like(T, dtype=torch.bool)
    log_width = torch.full_like(T, math.log(width))
    inside = family.log_interval(low, high, log_width, never, never)
    a, b = -np.abs(T.numpy()) - 0.5 * width, -np.abs(T.numpy()) + 0.5 * width
    expected = np.log(reference.cdf(b) - reference.cdf(a))
    if width < 1e-3:  # scipy's difference loses digits: density × width is exact to width²
        expected = reference.logpdf(T.numpy()) + math.log(width)
    np.testing.assert_allclose(inside, expected, rtol=1e-3, atol=2e-3)
    below = family.log_interval(low, high, log_width, always, never)
    above = family.log_interval(low, high, log_width, never, always)
    np.testing.assert_allclose(below, reference.logcdf(high), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(above, reference.logsf(low), rtol=1e-6, atol=1e-9)


def test_the_gradient_of_the_log_of_a_far_normal_tail_is_right_in_float32() -> None:
    """d log Φ(t)/dt = φ(t)/Φ(t) = −t (1 + 1/t² − …), where −t²/2 has no digits left."""
    t = torch.tensor([-7e4, -1e4, -300.0, -20.0, -9.9, -1.0], requires_grad=True)
    log_cdf = Normal().log_cdf(t)
    log_cdf.sum().backward()
    at = t.detach().double().numpy()
    np.testing.assert_allclose(log_cdf.detach(), stats.norm.logcdf(at), rtol=1e-5)
    expected = np.exp(stats.norm.logpdf(at[2:]) - stats.norm.logcdf(at[2:]))
    np.testing.assert_allclose(t.grad, [7e4, 1e4, *expected], rtol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_loss_is_the_served_log_density_without_its_jacobian(case: Case) -> None:
    """Of one draw: the mixture adds log |dz/dy| to a density, nothing to a probability."""
    y = torch.tensor([0.0, 2.0, 7.0]).double()
    for sample in range(SAMPLES):
        outputs = case.outputs[sample : sample + 1]
        loss = case.likelihood.log_prob(outputs, y, {})[0]
        parts = case.likelihood.parts(outputs)
        served = type(case.mixture).of(case.target, parts)
        found = served.log_prob(y)
        expected = loss + case.target.log_derivative(y)
        torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_are_finite_differences(case: Case) -> None:
    outputs = case.outputs[:1].clone().requires_grad_()
    y = torch.tensor([0.0, 2.0, 7.0]).double()

    def loss(outputs: torch.Tensor) -> torch.Tensor:
        return case.likelihood.log_prob(outputs, y, {})

    torch.autograd.gradcheck(loss, (outputs,), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_extreme_outputs_have_a_finite_loss_and_gradient_in_float32(case: Case) -> None:
    """Where an optimiser may be for a moment; the targets are as far away as a training row."""
    y = torch.tensor([0.0, 2.0, 29.0]).double()
    for size in (-1e4, -30.0, 30.0, 1e4):
        shape = (1, 3, case.likelihood.num_outputs)
        outputs = torch.full(shape, size, requires_grad=True)
        loss = case.likelihood.log_prob(outputs, y, {})
        loss.sum().backward()
        assert bool(loss.isfinite().all())
        assert bool(outputs.grad.isfinite().all())


def _whole_numbers() -> dict[str, np.ndarray]:
    """Prices with slips of 10 and more times, up to the largest float32, and counts with one."""
    rng = np.random.default_rng(0)
    prices = np.round(rng.lognormal(12.5, 0.4, 400), -3)
    slips = np.arange(400) < 3
    return {
        "prices": prices,
        "years": 2000.0 + np.round(rng.normal(0, 3, 400)),
        "prices, 3 × 1e6": prices * np.where(slips, 1e6, 1.0),
        "prices, 3 × −1e30": prices * np.where(slips, -1e30, 1.0),
        "prices × 1e15": prices * 1e15,
        "counts beside 1e7": np.append(rng.poisson(2, 400).astype(float), 1e7),
    }


@pytest.mark.parametrize("name", _whole_numbers())
@pytest.mark.parametrize("kind", ["gaussian", "mixture"])
def test_large_whole_numbers_have_finite_gradients(name: str, kind: ShapedKind) -> None:
    values = _whole_numbers()[name]
    given = LikelihoodConfig(kind=kind, components=3 if kind == "mixture" else 1)
    for target in describe_target(values, None, given):
        assert target.integer
        likelihood = build_likelihood(given, None, target)
        noise = torch.Generator().manual_seed(0)
        for size in (1.0, 1e4):  # of the outputs: where an optimiser may be
            shape = (2, len(values), likelihood.num_outputs)
            outputs = (size * torch.randn(shape, generator=noise)).requires_grad_()
            loss = likelihood.log_prob(outputs, target.encode(values), {})
            (gradient,) = torch.autograd.grad(loss.sum(), outputs)
            assert bool(loss.isfinite().all())
            assert bool(gradient.isfinite().all())
