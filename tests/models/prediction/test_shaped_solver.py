"""Quantiles and moments of mixtures of many components, against bisection and dense quadrature."""

import pytest
import torch
from torch import Tensor

from models.likelihoods.families import Family, Logistic, Normal
from models.likelihoods.quantiles import Continuous, solve

SAMPLES, COMPONENTS, ROWS = 40, 3, 9
LEVELS = (1e-9, 1e-4, 0.05, 0.3, 0.5, 0.77, 0.95, 0.999, 1 - 1e-9)
NORMAL, LOGISTIC = Normal(), Logistic()


def mixture_of(kind: str, family: Family, bounds: tuple[float | None, float | None]) -> Continuous:
    """Mixtures that are hard in one way each; components follow samples, as posteriors' do."""
    random = torch.Generator().manual_seed(3)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64)

    locs = normal(1, COMPONENTS, ROWS) + 0.2 * normal(SAMPLES, COMPONENTS, ROWS)
    scales = 0.5 * torch.exp(0.3 * normal(SAMPLES, COMPONENTS, ROWS))
    match kind:
        case "tiny scales":
            scales = scales * 6e-4
        case "narrow beside wide":
            scales = scales * torch.tensor([6e-4, 1.0, 6.0]).view(-1, 1)
        case "far apart":
            locs, scales = locs + torch.tensor([-60.0, 0.0, 45.0]).view(-1, 1), 0.05 * scales
        case "outlying samples":
            locs = torch.where(torch.arange(SAMPLES).view(-1, 1, 1) == 17, locs + 30, locs)
    low, high = bounds
    locs = locs.clamp(low, high) if (low, high) != (None, None) else locs
    weights = normal(SAMPLES, COMPONENTS, ROWS).softmax(1)
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
    wanted = torch.tensor(LEVELS, dtype=torch.float64).view(-1, 1) * of.mass
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
