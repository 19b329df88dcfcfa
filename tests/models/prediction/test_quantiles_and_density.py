"""Quantiles and densities of mixtures: closed forms, integrals, whole numbers and atoms."""

import numpy as np
import pytest
import torch
from scipy import stats

from models.evaluation.calibration import NumberCalibration
from models.prediction.answers import density, quantiles
from models.prediction.density_grid import TAIL, whole_grid
from models.prediction.number_mixture import NumberMixture
from models.prediction.options import Density, PredictOptions, ResolvedOptions
from models.prediction.predictive import GaussianMixture
from tests.models.prediction.shaped_cases import CASES, ROWS, Case

CONTINUOUS = [case for case in CASES if not case.integer]


def gaussians(*components: tuple[float, float]) -> GaussianMixture:
    """One row, a sample per mean and standard deviation."""
    means, deviations = torch.tensor(components, dtype=torch.float64).T.unsqueeze(-1)
    return GaussianMixture(means, deviations.square())


def drawn(mixture: NumberMixture, points: int) -> tuple[np.ndarray, np.ndarray]:
    """The values and their density, points × rows."""
    options = PredictOptions(density=Density(points))
    found = density.of_mixture(mixture, options, None)
    return found["values"].T.numpy(), found["density"].T.numpy()


def test_quantiles_of_one_gaussian_are_closed_in_the_order_of_the_request() -> None:
    levels = (0.9, 0.001, 0.5, 0.9)
    mixture, options = gaussians((3.0, 2.0)), PredictOptions(quantiles=levels)
    found = quantiles.of_mixture(mixture, options, None)["values"]
    np.testing.assert_allclose(found[0].numpy(), stats.norm.ppf(levels, 3.0, 2.0), atol=1e-6)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_quantiles_are_the_smallest_values_with_the_probability(case: Case) -> None:
    levels = tuple(np.linspace(0.01, 0.99, 99).tolist())
    options = PredictOptions(quantiles=levels)
    found = quantiles.of_mixture(case.mixture, options, None)["values"].T.numpy()
    for row in range(ROWS):
        assert (case.cdf(found[:, row] + 1e-6, row) >= np.array(levels) - 1e-6).all()
        assert (case.cdf(found[:, row] - 1e-6, row) <= np.array(levels) + 1e-6).all()


def test_the_density_of_gaussians_is_closed() -> None:
    values, found = drawn(gaussians((0.0, 1.0), (4.0, 0.5)), 64)
    expected = 0.5 * (stats.norm.pdf(values, 0, 1) + stats.norm.pdf(values, 4, 0.5))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("ratio", [1.0, 3.0, 10.0])
def test_the_density_adds_up_on_the_grid(ratio: float) -> None:
    """The trapezoids' sum is the probability between the ends, 1 − 2 · 0.001, to two per cent."""
    values, found = drawn(gaussians((0.0, 1.0), (0.3, 1.0 / ratio)), 64)
    assert abs(np.trapezoid(found[:, 0], values[:, 0]) - (1 - 2 * TAIL)) < 0.02


@pytest.mark.parametrize("ratio", [10.0, 100.0, 1e3])
def test_the_grid_finds_narrow_peaks(ratio: float) -> None:
    """A peak has half of the probability, and so about a quarter of the values."""
    values, found = drawn(gaussians((0.0, 1.0), (0.3, 1.0 / ratio)), 64)
    assert found.max() > 0.98 * 0.5 * stats.norm.pdf(0, 0, 1 / ratio)
    assert (np.abs(values - 0.3) < 3 / ratio).sum() >= 12


@pytest.mark.parametrize("case", CONTINUOUS, ids=str)
def test_densities_integrate_to_what_the_atoms_leave(case: Case) -> None:
    values, found = drawn(case.mixture, 128)
    left = 1 - case.mixture.atom_probabilities().sum(0).numpy()
    area = np.trapezoid(found, values, axis=0)
    np.testing.assert_allclose(area / left, 1 - 2 * TAIL, atol=0.015)
    assert (np.diff(values, axis=0) >= 0).all()


@pytest.mark.parametrize("case", CONTINUOUS, ids=str)
def test_densities_are_slopes_of_the_distribution_function(case: Case) -> None:
    values, found = drawn(case.mixture, 16)
    for row in range(ROWS):
        inner = values[2:-2, row]
        inner = inner[~np.isclose(inner[:, None], case.atoms).any(1)] if case.atoms else inner
        places = np.searchsorted(values[:, row], inner)
        step = 1e-4
        slope = (case.cdf(inner + step, row) - case.cdf(inner - step, row)) / (2 * step)
        np.testing.assert_allclose(found[places, row], slope, rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("case", [case for case in CASES if case.integer], ids=str)
def test_whole_numbers_have_their_probabilities(case: Case) -> None:
    values, found = drawn(case.mixture, 64)
    assert (values == np.round(values)).all()
    for row in range(ROWS):
        step = case.cdf(values[:, row], row) - case.cdf(values[:, row] - 1, row)
        np.testing.assert_allclose(found[:, row], step, atol=1e-6)
    if (np.diff(values, axis=0) == 1).all():
        assert (found.sum(0) > 1 - 2.1 * TAIL).all()


@pytest.mark.parametrize(
    ("low", "high", "lower", "expected"),
    [
        (2.0, 4.0, None, [0, 1, 2, 3, 4, 5, 6]),
        (0.0, 2.0, 0.0, [0, 1, 2, 3, 4, 5, 6]),
        (0.0, 600.0, 0.0, [0, 100, 200, 300, 400, 500, 600]),
    ],
)
def test_whole_numbers_of_a_grid(
    low: float, high: float, lower: float | None, expected: list[float]
) -> None:
    ends = (torch.tensor([value], dtype=torch.float64) for value in (low, high))
    assert whole_grid(*ends, 7, lower, None)[:, 0].tolist() == expected


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_the_stated_errors_are_those_of_repeated_samples(scale: float) -> None:
    """As in `test_exceeds`; the density is compared at the same values in every repetition."""
    random = torch.Generator().manual_seed(0)
    means = torch.randn(40, 600, generator=random, dtype=torch.float64)
    raw = GaussianMixture(means, torch.ones_like(means))
    mixture = NumberCalibration(scale, (), 10).apply(raw)
    assert isinstance(mixture, GaussianMixture)

    def error(parts: torch.Tensor) -> torch.Tensor:
        return parts.std(0) / len(parts) ** 0.5

    options = PredictOptions(quantiles=(0.1, 0.7), density=Density(3), return_mc_errors=True)
    found = quantiles.of_mixture(mixture, options, None)
    stated = quantiles.errors(mixture, raw, found, options, error)
    for level, values in zip(options.quantiles, found["values"].T, strict=True):
        each = stated[f"quantile_{level}"].square().mean().sqrt()
        torch.testing.assert_close(each, values.std(), rtol=0.15, atol=0)
    grid = torch.tensor([-1.0, 0.4, 2.5], dtype=torch.float64).expand(600, -1)
    errors = density.errors(mixture, raw, {"values": grid}, options, error)["density"]
    actual = mixture.density(grid.T).std(1)
    torch.testing.assert_close(errors.square().mean(0).sqrt(), actual, rtol=0.15, atol=0)


def test_an_answer_says_whether_it_has_densities_and_lists_the_atoms() -> None:
    case = Case("bounded", "normal", 2, (0.0, 5.0))
    asked = PredictOptions(density=Density(8))
    arrays = {k: v.numpy() for k, v in density.of_mixture(case.mixture, asked, None).items()}
    resolved = ResolvedOptions.of(asked, seed=0, sampler="sobol", top=1, horizon=1)
    found = density.answer(arrays, resolved, None)
    document = found.document()
    assert document["kind"] == "density"
    assert [atom["value"] for atom in document["atoms"]] == [0.0, 5.0]
    for atom, probability in zip(document["atoms"], case.mixture.atoms.mean(0), strict=True):
        np.testing.assert_array_equal(atom["probability"], probability.numpy())
    assert list(found.columns()) == [
        "density_kind",
        "density_values",
        "density",
        "density_atom_0.0",
        "density_atom_5.0",
    ]
    half = [found.select(slice(0, 1)), found.select(slice(1, None))]
    np.testing.assert_array_equal(density.PredictedDensity.joined(half).density, found.density)
