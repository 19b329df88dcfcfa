"""Quantiles and moments of mixtures of many components, against bisection and dense quadrature."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from models.evaluation.calibration import ShapeCalibration
from models.evaluation.cells import Cells
from models.features.scales import IdentityScale, LogitScale, LogScale, Scale
from models.features.targets import NumberTarget
from models.likelihoods.families import Family, Logistic, Normal, Student, TabulatedStudent
from models.prediction.options import PredictOptions
from models.prediction.prediction import summarise
from models.prediction.shaped import moments, quantiles
from models.prediction.shaped.moments import component_moments
from models.prediction.shaped.quantiles import Continuous, solve
from tests.models.prediction.shaped_cases import CASES, Case

SAMPLES, COMPONENTS, ROWS = 40, 3, 9
LEVELS = (1e-9, 1e-4, 0.05, 0.3, 0.5, 0.77, 0.95, 0.999, 1 - 1e-9)
FAMILIES: dict[str, Family] = {
    "normal": Normal(),
    "logistic": Logistic(),
    "student": TabulatedStudent.of(Student(torch.tensor(2.6, dtype=torch.float64))),
    "students": TabulatedStudent.of(Student(torch.linspace(2.1, 90, SAMPLES).view(-1, 1, 1))),
}


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


@pytest.mark.parametrize("bounds", [(None, None), (-0.5, None), (-0.4, 0.7)], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "kind", ["plain", "tiny scales", "narrow beside wide", "far apart", "outlying samples"]
)
def test_quantiles_are_those_of_bisection(
    kind: str, family: str, bounds: tuple[float | None, float | None]
) -> None:
    """To 1e-7 standard deviations, which is promised, or where G is steep to 1e-12 in G."""
    of = mixture_of(kind, FAMILIES[family], bounds)
    wanted = torch.tensor(LEVELS, dtype=torch.float64).view(-1, 1) * of.mass
    found = solve(of, wanted)
    low, high = (torch.full_like(wanted, end) for end in (-1e6, 1e6))
    low, high = (end if bounds == (None, None) else end.clamp(*bounds) for end in (low, high))
    for _ in range(100):
        middle = 0.5 * (low + high)
        below = of.cdf(middle) < wanted
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    error = (found - low).abs() / of.deviation()[1]
    # A plateau of G between far components, and the ends of a table, have no single quantile.
    reached = (of.cdf(found) - wanted).abs() / torch.minimum(wanted, of.mass - wanted)
    assert bool(((error < 1e-7) | (reached < 1e-6)).all())


def test_each_row_has_levels_of_its_own() -> None:
    for case in CASES:
        levels = torch.tensor([[0.1, 0.5, 0.8], [0.9, 0.02, 0.5]], dtype=torch.float64)
        found = case.mixture.quantiles_at(levels)
        for row in range(3):
            alone = case.mixture.quantiles(levels[:, row].tolist())[:, row]
            torch.testing.assert_close(found[:, row], alone, atol=1e-6, rtol=0)


def test_rows_are_cut_for_the_cache_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    of = mixture_of("plain", FAMILIES["students"], (-0.5, None))
    wanted = torch.tensor([0.05, 0.5], dtype=torch.float64).view(-1, 1) * of.mass
    target = NumberTarget.shaped(np.geomspace(0.1, 30, 50), LogScale(0.0, 0.1), lower=0.0)
    whole = solve(of, wanted), component_moments(target, of.family, of.locs, of.scales)
    monkeypatch.setattr(quantiles, "_SOLVED_AT_ONCE", 1)
    monkeypatch.setattr(moments, "_AT_ONCE", 1)
    torch.testing.assert_close(solve(of, wanted), whole[0], atol=1e-7, rtol=0)
    cut = component_moments(target, of.family, of.locs, of.scales)
    torch.testing.assert_close(cut, whole[1])


@pytest.mark.parametrize("family", ["normal", "logistic"])
@pytest.mark.parametrize(
    ("scale", "bounds"),
    [
        (LogScale(0.0, 0.1), {"lower": 0.0}),
        (LogitScale(0.0, 30.0, 0.05), {"lower": 0.0, "upper": 30.0}),
        (IdentityScale(), {"lower": 0.0}),
    ],
    ids=["log", "logit", "identity"],
)
def test_moments_of_components_are_scipys(
    scale: Scale, bounds: dict[str, float], family: str
) -> None:
    """To 1e-6 standard deviations: 18 nodes are enough where tails are light."""
    target = NumberTarget.shaped(np.geomspace(0.05, 29, 200), scale, **bounds)
    low, high = target.z_extremes
    base = {"normal": stats.norm, "logistic": stats.logistic}[family]
    locs = torch.linspace(low + 0.05, high - 0.05, 4, dtype=torch.float64).repeat(4)
    scales = torch.tensor([3e-4, 0.05, 0.4, 3.0], dtype=torch.float64).repeat_interleave(4)
    found = component_moments(target, FAMILIES[family], locs.view(1, -1, 1), scales.view(1, -1, 1))
    means, variances = (part.flatten().tolist() for part in found)
    for loc, width, mean, variance in zip(
        locs.tolist(), scales.tolist(), means, variances, strict=True
    ):
        first, second = by_panels(target, base(loc, width))
        assert mean == pytest.approx(first, abs=1e-6 * second**0.5)
        assert variance == pytest.approx(second, rel=1e-5)


def by_panels(target: NumberTarget, on_z: Any) -> tuple[float, float]:
    """Mean and variance of Y: Z is cut off at bounds; at other extremes it counts as these."""
    low, high = target.z_extremes
    points = np.unique(np.clip(on_z.mean() + on_z.std() * np.linspace(-22, 22, 89), low, high))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = 0.5 * np.diff(points)[:, None]
    z = (points[:-1, None] + half + half * nodes).ravel()
    shares = (half * weights).ravel() * on_z.pdf(z)
    z = np.append(z, [low, high])
    beyond = [on_z.cdf(low), on_z.sf(high)]
    cut = [bound is not None for bound in target.z_bounds]
    shares = np.append(shares, np.where(cut, 0.0, beyond))
    shares /= shares.sum()
    y = target.from_z(torch.from_numpy(z)).numpy()
    mean = float((shares * y).sum())
    return mean, float((shares * (y - mean) ** 2).sum())


@pytest.mark.parametrize("groups", [None, torch.tensor([0, -1, 1])])
def test_a_summary_has_the_intervals_that_the_calibration_gives(groups: Tensor | None) -> None:
    """They are solved together with the other quantiles."""
    scores = tuple(np.linspace(0.01, 0.99, 99).tolist())
    cells = Cells((scores[:40], scores[20:]), (40, 79))
    calibration = ShapeCalibration(1.3, scores, 99, cells=cells)
    for case in (Case("log", "logistic", 3, (0.0, 2.0)), Case("identity", "student", 1)):
        summary = summarise(case.mixture, PredictOptions(), None, calibration, groups)
        mixture = calibration.apply(case.mixture)
        for level in PredictOptions().intervals:
            ((lower, upper),) = calibration.intervals(mixture, [level], groups)
            ends = mixture.quantiles([0.5 * (1 - level), 0.5 * (1 + level)])
            for kind, (low, high) in (("conformal", (lower, upper)), ("credible", ends)):
                for end, value in (("lower", low), ("upper", high)):
                    known = torch.from_numpy(summary[f"{kind} {end} {level}"])
                    torch.testing.assert_close(known, value, atol=1e-6, rtol=1e-6)
