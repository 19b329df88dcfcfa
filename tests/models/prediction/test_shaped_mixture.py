"""Mixtures with a shape, against plain formulas and numerical integration in float64."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from models.evaluation.crps import mixture_crps
from models.likelihoods.families import Family, Logistic, Normal
from models.likelihoods.number_mixture import NumberMixture
from models.likelihoods.quantiles import Continuous, solve
from models.prediction.monte_carlo_error import all_errors, standard_error
from tests.models.prediction.shaped_cases import CASES, FAMILIES, ROWS, SAMPLES, SCALES, Case

WHOLE = [case for case in CASES if case.integer]
DENSE = [case for case in CASES if not case.integer]
LEVELS = (0.01, 0.05, 0.3, 0.5, 0.9, 0.99)


def row_of(value: float) -> torch.Tensor:
    return torch.full((ROWS,), value, dtype=torch.float64)


def extremes(case: Case) -> tuple[float, float]:
    """The range in which moments are computed."""
    ends = torch.tensor(case.target.z_extremes, dtype=torch.float64)
    low, high = case.target.from_z(ends).tolist()
    return low, high


def grid(case: Case, tail: float = 1.0) -> np.ndarray:
    """Fine in the range of moments, then wider and wider; atoms are nodes."""
    low, high = extremes(case)
    nodes = np.linspace(low, high, 8001)
    if tail > 1 and case.target.upper is None:
        nodes = np.concatenate([nodes, high + (high - low) * (np.geomspace(1, tail, 3000) - 1)])
    if tail > 1 and case.target.lower is None:
        nodes = np.concatenate([nodes, low - (high - low) * (np.geomspace(1, tail, 3000) - 1)])
    return np.unique(np.concatenate([nodes, case.atoms]))


def before(values: np.ndarray) -> np.ndarray:
    return np.nextafter(values, -np.inf)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_distribution_function_is_that_of_its_components(case: Case) -> None:
    low, high = extremes(case)
    for value in [low - 1, *np.linspace(low, high, 7), 0.0, 1.0, 2.0, high + 1]:
        at, left = case.mixture.cdf(row_of(value)), case.mixture.cdf_before(row_of(value))
        for row in range(ROWS):
            assert at[row].item() == pytest.approx(case.cdf(np.array([value]), row)[0], abs=1e-12)
            expected = case.cdf(before(np.array([value])), row)[0]
            assert left[row].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("case", DENSE, ids=str)
def test_densities_and_atoms_are_slopes_and_jumps_of_the_distribution_function(case: Case) -> None:
    """The density of y, with the Jacobian; so it integrates to 1 with the atoms."""
    for value in (0.3, 1.7, 4.0, 11.0):
        step = 1e-4
        log_prob = case.mixture.log_prob(row_of(value))
        for row in range(ROWS):
            down, up = case.cdf(np.array([value - step, value + step]), row)
            slope = (up - down) / (2 * step)
            assert log_prob[row].item() == pytest.approx(np.log(slope), abs=2e-4)
    for atom in case.atoms:
        jump = case.mixture.cdf(row_of(atom)) - case.mixture.cdf_before(row_of(atom))
        torch.testing.assert_close(case.mixture.log_prob(row_of(atom)).exp(), jump)


@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_probabilities_of_whole_numbers_are_differences_and_sum_to_1(case: Case) -> None:
    low, high = extremes(case)
    start, stop = round(low), round(high) + 30
    if case.target.upper is not None:
        stop = round(case.target.upper)
    total = torch.zeros(ROWS, dtype=torch.float64)
    for k in range(start, stop + 1):
        probability = case.mixture.log_prob(row_of(k)).exp()
        step = case.mixture.cdf(row_of(k)) - case.mixture.cdf_before(row_of(k))
        torch.testing.assert_close(probability, step, atol=3e-7, rtol=1e-4)
        total += probability
    inside = case.mixture.cdf(row_of(stop)) - case.mixture.cdf_before(row_of(start))
    torch.testing.assert_close(total, inside, atol=1e-5, rtol=0)
    assert bool((case.mixture.log_prob(row_of(1.5)) < -600).all())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_moments_are_those_by_numerical_integration(case: Case) -> None:
    """E(y | w) and Var(y | w) from the distribution function of each sample."""
    means, noise = case.mixture.predicted_means(), case.mixture.noise_variances()
    closed = case.scale == "identity" and not case.integer
    nodes = grid(case, tail=1e5) if closed else grid(case)
    if case.integer:
        low, high = extremes(case)
        nodes = np.arange(round(low), round(high) + 1, dtype=float)
    for sample in range(SAMPLES):
        for row in range(ROWS):
            right = 1 - case.sample_cdf(nodes[:-1], sample, row)
            left = right if case.integer else 1 - case.sample_cdf(before(nodes[1:]), sample, row)
            above, width = 0.5 * (left + right), np.diff(nodes)
            middle = 0.5 * (nodes[1:] + nodes[:-1]) - nodes[0]
            first, second = (above * width).sum(), (2 * middle * above * width).sum()
            start, mean = nodes[0], means[sample, row].item()
            if closed:  # from the left end, where nothing is left, the tails nearly cancel
                assert start + first == pytest.approx(mean, abs=3e-3)
                continue
            assert start + first == pytest.approx(mean, abs=2e-5)
            variance = second - first**2
            assert noise[sample, row].item() == pytest.approx(variance, rel=1e-4)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_quantiles_are_the_generalised_inverse(case: Case) -> None:
    """P(Y ≤ Q(p)) ≥ p, and P(Y < Q(p)) ≤ p, by the formulas of scipy."""
    quantiles = case.mixture.quantiles(LEVELS)
    for level, values in zip(LEVELS, quantiles, strict=True):
        for row in range(ROWS):
            at = np.array([values[row].item()])
            assert case.cdf(at, row)[0] >= level - 1e-6
            assert case.cdf(before(at), row)[0] <= level + 1e-6
    torch.testing.assert_close(case.mixture.median(), quantiles[3])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_crps_is_the_integral(case: Case) -> None:
    """To 0.5 %: nodes follow the distribution, between them it is linear."""
    nodes = grid(case, tail=1e6)
    if case.integer:
        first, last = max(round(nodes[0]), -60_000), min(round(nodes[-1]), 60_000)
        nodes = np.arange(first, last + 1, dtype=float)
    for truth in (0.0, 1.0, 6.0):
        score = mixture_crps(case.mixture, row_of(truth))
        for row in range(ROWS):
            after = nodes[:-1] >= truth
            right = case.cdf(nodes[:-1], row) - after
            left = right if case.integer else case.cdf(before(nodes[1:]), row) - after
            expected = ((right**2 + right * left + left**2) / 3 * np.diff(nodes)).sum()
            heavy = case.integer and case.scale == "log" and case.components == 1
            assert score[row].item() == pytest.approx(expected, rel=0.1 if heavy else 5e-3)


def test_randomised_pit_values_are_uniform() -> None:
    """Of truths drawn from the prediction itself, whole numbers with an atom at 0.

    The Kolmogorov–Smirnov test fails one run in 1,000, and the seed makes it the same run.
    """
    case = Case("log", "logistic", 1, (0.0,), integer=True)
    one = case.mixture.first(1)
    levels = torch.rand(2000, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    wide = NumberMixture(
        case.target,
        one.family,
        *(part[..., :1].expand(-1, -1, 2000) for part in (one.locs, one.scales, one.weights)),
        one.atoms[..., :1].expand(-1, -1, 2000),
    )
    table = one.quantiles(sorted(levels.tolist()))[:, 0]
    pit = wide.pit(table[torch.randperm(2000, generator=torch.Generator().manual_seed(4))])
    assert stats.kstest(pit.numpy(), "uniform").pvalue > 1e-3


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(sorted(SCALES)),
    st.sampled_from(FAMILIES),
    st.booleans(),
    st.lists(st.floats(-1e4, 1e4), min_size=9, max_size=9),
    st.floats(0.05, 20),
)
def test_nothing_leaves_the_support(
    scale: str, family: str, integer: bool, outputs: list[float], factor: float
) -> None:
    """Quantiles, means and deviations, for any output of a network, calibrated or not."""
    case = Case(scale, family, 3, integer=integer and scale != "power")  # type: ignore[arg-type]
    target, likelihood = case.target, case.likelihood
    raw = torch.tensor(outputs, dtype=torch.float64).view(1, 1, 9)
    parts = likelihood.parts(raw)
    plain = NumberMixture.of(target, parts)
    for mixture in (plain, plain.scaled(factor)):
        values = torch.cat(
            [mixture.quantiles([0.001, 0.05, 0.5, 0.95, 0.999]), mixture.mean()[None]]
        )
        assert bool(values.isfinite().all())
        assert bool(mixture.total().isfinite().all())
        if target.lower is not None:
            assert bool((values >= target.lower).all())
        if target.upper is not None:
            assert bool((values <= target.upper).all())
        truth = torch.tensor([3.0]).double()
        assert bool(mixture.log_prob(truth).isfinite().all())
        assert bool(mixture_crps(mixture, truth).isfinite().all())


def drawn(case: Case, rows: int, samples: int, seed: int) -> NumberMixture:
    """A mixture of independent samples around the same outputs for every seed."""
    fixed, random = torch.Generator().manual_seed(3), torch.Generator().manual_seed(seed)
    shape = (1, rows, case.likelihood.num_outputs)
    centre = 0.6 * torch.randn(shape, generator=fixed, dtype=torch.float64)
    spread = torch.randn((samples, *shape[1:]), generator=random, dtype=torch.float64)
    parts = case.likelihood.parts(centre + 0.4 * spread)
    return NumberMixture.of(case.target, parts)


@pytest.mark.parametrize("samples", [30, 300])
def test_quantiles_that_are_whole_numbers_state_how_far_they_jump(samples: int) -> None:
    """Root mean squares over 60 rows and 60 seeds, whose chance is some 5 %."""
    case = Case("bounded", "logistic", 3, (0.0,), integer=True)
    found, stated = [], []
    for seed in range(60):
        mixture = drawn(case, 60, samples, seed)
        levels = torch.tensor([0.1, 0.5, 0.8], dtype=torch.float64)
        values = {"quantile": mixture.quantiles(levels.tolist()).T}
        at = {"quantile": levels.expand(60, -1)}
        errors = all_errors(mixture, mixture, values, at, standard_error)
        found.append(values["quantile"])
        stated.append(errors["quantile"].square())
    actual, expected = torch.stack(found).var(0).mean(0), torch.stack(stated).mean((0, 1))
    assert (actual[1:] > 0).all()  # the lowest is 0 in all rows
    assert 0.75 < (actual.sum() / expected.sum()).sqrt() < 1.25


@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_intervals_of_whole_numbers_leave_out_an_end_that_is_not_needed(case: Case) -> None:
    """Where it is clear: five intervals of each level are compared, a quarter of the rest apart."""
    mixture, levels = case.mixture, (0.3, 0.5, 0.9)
    tails = [0.5 * (1 - level) for level in levels]
    ends = mixture.quantiles([*tails, *(1 - tail for tail in tails)]).chunk(2)

    def held(start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
        return mixture.cdf(end) - mixture.cdf_before(start)

    for level, start, end, low, high in zip(levels, *mixture.intervals(levels), *ends, strict=True):
        assert (held(start, end) >= level - 1e-6).all()
        assert torch.isin(start - low, torch.tensor([0.0, 1.0])).all()
        assert torch.isin(high - end, torch.tensor([0.0, 1.0])).all()
        most = torch.maximum(held(low + 1, high), held(low, high - 1))
        spare = most >= level + 0.25 * (1 - level)
        assert (end - start < high - low)[spare].all()


DRAWN, COMPONENTS, COLUMNS = 40, 3, 9
FAR_LEVELS = (1e-9, 1e-4, 0.05, 0.3, 0.5, 0.77, 0.95, 0.999, 1 - 1e-9)
NORMAL, LOGISTIC = Normal(), Logistic()


def mixture_of(kind: str, family: Family, bounds: tuple[float | None, float | None]) -> Continuous:
    """Mixtures that are hard in one way each; components follow samples, as posteriors' do."""
    random = torch.Generator().manual_seed(3)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64)

    locs = normal(1, COMPONENTS, COLUMNS) + 0.2 * normal(DRAWN, COMPONENTS, COLUMNS)
    scales = 0.5 * torch.exp(0.3 * normal(DRAWN, COMPONENTS, COLUMNS))
    match kind:
        case "tiny scales":
            scales = scales * 6e-4
        case "narrow beside wide":
            scales = scales * torch.tensor([6e-4, 1.0, 6.0]).view(-1, 1)
        case "far apart":
            locs, scales = locs + torch.tensor([-60.0, 0.0, 45.0]).view(-1, 1), 0.05 * scales
        case "outlying samples":
            locs = torch.where(torch.arange(DRAWN).view(-1, 1, 1) == 17, locs + 30, locs)
    low, high = bounds
    locs = locs.clamp(low, high) if (low, high) != (None, None) else locs
    weights = normal(DRAWN, COMPONENTS, COLUMNS).softmax(1)
    return Continuous.of(family, locs, scales, weights, bounds)


@pytest.mark.parametrize(
    ("kind", "family", "bounds"),
    [
        ("plain", NORMAL, (-0.4, 0.7)),
        ("plain", LOGISTIC, (None, None)),
        ("tiny scales", LOGISTIC, (-0.5, None)),
        ("tiny scales", NORMAL, (None, None)),
        ("narrow beside wide", LOGISTIC, (None, None)),
        ("narrow beside wide", NORMAL, (-0.4, 0.7)),
        ("far apart", NORMAL, (None, None)),
        ("far apart", LOGISTIC, (-0.5, None)),
        ("outlying samples", LOGISTIC, (None, None)),
        ("outlying samples", NORMAL, (-0.5, None)),
    ],
)
def test_quantiles_are_those_of_bisection(
    kind: str, family: Family, bounds: tuple[float | None, float | None]
) -> None:
    """To 1e-7 standard deviations, which is promised, or where G is steep to 1e-12 in G."""
    of = mixture_of(kind, family, bounds)
    wanted = torch.tensor(FAR_LEVELS, dtype=torch.float64).view(-1, 1) * of.mass
    found = solve(of, wanted)
    low, high = (torch.full_like(wanted, end) for end in (-1e6, 1e6))
    low, high = (end if bounds == (None, None) else end.clamp(*bounds) for end in (low, high))
    for _ in range(100):
        middle = 0.5 * (low + high)
        below = of.cdf(middle) < wanted
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    error = (found - low).abs() / of.deviation()[1]
    # A plateau of G between far components has no single quantile.
    reached = (of.cdf(found) - wanted).abs() / torch.minimum(wanted, of.mass - wanted)
    assert bool(((error < 1e-7) | (reached < 1e-6)).all())
