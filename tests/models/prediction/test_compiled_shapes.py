"""Compiled kernels of shaped mixtures against torch, which computes the same by other code."""

import numpy as np
import pytest
import torch
from jaxtyping import Float64
from torch import Tensor

from models.config import MLPConfig
from models.evaluation.adaptive import Adapted
from models.evaluation.calibration import ShapeCalibration
from models.evaluation.cells import Cells
from models.inference.bbb import BBBState
from models.likelihoods import ShapedLikelihood
from models.likelihoods.number_mixture import NumberMixture
from models.networks import MLP, Inputs, build_network
from models.posteriors.mean_field import MeanFieldNormal, softplus_inverse
from models.prediction.compiled.compiler import compiler
from models.prediction.compiled.shapes import Components, Outputs, Shape
from models.prediction.engine import Engine
from models.prediction.fitted import Sampled
from models.prediction.monte_carlo_error import error_of_mean, even_error
from models.prediction.options import ResolvedOptions
from models.prediction.summary import Summary
from models.tabular.model import make_ready
from tests.models.prediction.shaped_cases import CASES, Case

ROWS = 5
FACTOR = 1.7
DIGITS = 3e-6  # of a standard deviation: float32 tails, and quadratures of the components
LEVELS = (1e-13, 0.0005, 0.05, 0.5, 0.6, 0.95, 0.9995, 1 - 1e-13)
_SCALES = ("identity", "bounded", "log")
KNOWN = [
    *(one for one in CASES if one.scale in _SCALES),
    Case("log", "logistic", 3),
    Case("identity", "logistic", 1),
    Case("identity", "normal", 2, (0.0,)),
    Case("identity", "logistic", 3, integer=True),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def kernels() -> object:
    """Compiled once, or read from the disk."""
    pytest.importorskip("numba", reason="without numba predictions use torch")
    assert compiler().wait()
    return compiler().kernels


def _drawn(likelihood: ShapedLikelihood, samples: int, scale: float = 0.6) -> Sampled:
    """Outputs of float32, whose moments differ between samples."""
    random = torch.Generator().manual_seed(1)
    shape = (samples, ROWS, likelihood.num_outputs)
    mean = scale * torch.randn(shape, generator=random) - 0.2
    variance = 0.1 * torch.rand(shape, generator=random)
    normals = torch.randn(samples, shape[2], generator=random)
    return Sampled(torch.stack([mean, variance]), normals, (samples,))


def _mixture(likelihood: ShapedLikelihood, drawn: Sampled) -> NumberMixture:
    parts = likelihood.parts(drawn.double().drawn())
    mixture = NumberMixture.of(likelihood.target, parts)
    return mixture.scaled(FACTOR)


def _components(likelihood: ShapedLikelihood, drawn: Sampled, *, even: bool = True) -> Components:
    shape, kernels = Shape.of(likelihood), compiler().kernels
    assert shape is not None
    assert kernels is not None
    found = Components.of(Outputs.of(kernels, drawn), shape, FACTOR, even=even)
    assert found is not None
    return found


def _assert_close(
    found: np.ndarray, expected: Tensor, unit: Float64[np.ndarray, "rows"], power: int = 1
) -> None:
    """Within digits of the predictive standard deviation and the value, or of their square."""
    wanted = expected.numpy()
    is_finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.where(is_finite, 0, found), np.where(is_finite, 0, wanted))
    error = np.where(is_finite, found, 0) - np.where(is_finite, wanted, 0)
    whole = unit + (np.where(is_finite, np.abs(wanted), 0) if power == 1 else 0)
    assert (np.abs(error) / whole**power).max() < DIGITS


@pytest.mark.parametrize("case", KNOWN, ids=str)
@pytest.mark.parametrize("samples", [1, 37])
def test_moments_error_and_quantiles(case: Case, samples: int) -> None:
    """Few samples start Newton's method without blocks. All rows have their own levels."""
    likelihood = case.likelihood
    drawn = _drawn(likelihood, samples)
    mixture, found = _mixture(likelihood, drawn), _components(likelihood, drawn)
    unit = mixture.total().sqrt().numpy()
    mean, aleatoric, epistemic, error = found.moments
    _assert_close(mean, mixture.mean(), unit)
    _assert_close(aleatoric, mixture.aleatoric(), unit, 2)
    if samples > 1:
        _assert_close(epistemic, mixture.epistemic(), unit, 2)
        _assert_close(error, error_of_mean(mixture, mixture, even_error), unit)
    levels = torch.tensor(LEVELS).double().unsqueeze(1).expand(-1, ROWS).contiguous()
    levels[2:6] += 0.01 * torch.arange(ROWS)
    _assert_close(found.quantiles(levels.numpy()), mixture.quantiles_at(levels), unit)


CELLS = Cells(((0.2, 0.7), (0.5, 0.8), (0.4, 0.9)), (2, 2, 2), edges=(3.0, 4.0))


@pytest.mark.parametrize(("cells", "sampler"), [(None, "moments"), (CELLS, "sobol")])
def test_answers_of_the_engine(cells: Cells | None, sampler: str) -> None:
    """All kinds of intervals; conformal ones of low, middle and high predictions."""
    case = Case("log", "logistic", 3)
    found, plain = _answers(case, cells, sampler)
    assert {"conformal_lower", "adaptive_upper"} < found.values.keys()
    for some, others in ((found.values, plain.values), (found.errors, plain.errors)):
        assert some.keys() == others.keys()
        for name, values in others.items():
            np.testing.assert_allclose(some[name], values, rtol=2e-4, atol=1e-6, err_msg=name)


def _answers(case: Case, cells: Cells | None, sampler: str) -> tuple[Summary, Summary]:
    """By kernels and by torch."""
    network = build_network(MLPConfig(hidden=(6, 5)), Inputs(4), case.likelihood.num_outputs)
    assert isinstance(network, MLP)
    random = torch.Generator().manual_seed(0)
    weights = torch.randn(network.layout.num_weights, generator=random)
    posterior = MeanFieldNormal(0.3 * weights, torch.full_like(weights, softplus_inverse(0.1)))
    calibration = ShapeCalibration(FACTOR, (0.1, 0.4, 0.6, 0.85, 0.9, 0.97), 6, cells=cells)
    options = ResolvedOptions(
        samples=37, seed=5, sampler=sampler, top=1, horizon=1, intervals=(0.5, 0.9),
        interval_kinds=("credible", "conformal", "adaptive"),
        adapted=(Adapted(0.5, 0.4, 0.3),),
    )  # fmt: skip
    fitted, x = make_ready(network, BBBState(posterior, {})), torch.randn(9, 4, generator=random)
    found = []
    for compiles in (True, False):
        engine = Engine(network, case.likelihood, case.target, compiles=compiles)
        (summary,) = engine.summaries(fitted, x, options, "epistemic_variance", calibration)
        found.append(summary)
    return found[0], found[1]
