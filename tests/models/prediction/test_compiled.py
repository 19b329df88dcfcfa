"""Compiled loops beside torch: every activation, shape, answer and number of threads."""

import logging
import math
import subprocess
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch
from jaxtyping import Float64
from torch import Tensor

from models.config import MLPConfig, PartConfig
from models.evaluation.adaptive import Adapted
from models.evaluation.calibration import ClassCalibration, NumberCalibration, ShapeCalibration
from models.evaluation.cells import Cells
from models.features.targets import ClassTarget, NumberTarget
from models.inference.bbb import BBBState
from models.likelihoods import (
    Bernoulli,
    Categorical,
    ClassLikelihood,
    HeteroscedasticGaussian,
    NumberLikelihood,
    ShapedLikelihood,
)
from models.likelihoods.number_mixture import NumberMixture
from models.networks import MLP, Inputs, Stack, build_network
from models.networks.pruning import prune
from models.posteriors.mean_field import MeanFieldNormal, softplus_inverse
from models.prediction.compiled.compiler import Compiler, compiler, is_cached
from models.prediction.compiled.shaped_arrays import Components, Outputs, Shape
from models.prediction.engine import Engine
from models.prediction.fitted import Fitted, Sampled
from models.prediction.monte_carlo_error import error_of_mean, even_error
from models.prediction.options import BatchOptions, ResolvedOptions
from models.prediction.summary import Summary
from models.tabular.model import make_ready
from tests.models.prediction.shaped_cases import CASES, Case
from tests.models.prediction.test_members import DEEP, SHALLOW, _randn

NUMBERS = NumberTarget(mean=3.0, std=2.0)
DIGITS = 2e-4  # float32 sums of some ten terms, and differences of them


@pytest.fixture(scope="module", autouse=True)
def kernels() -> object:
    """Compiled once, or read from the disk."""
    pytest.importorskip("numba", reason="without numba predictions use torch")
    assert compiler().wait()
    return compiler().kernels


def _network(
    outputs: int,
    hidden: tuple[int, ...] = (7, 5),
    activation: str = "relu",
    parts: tuple[PartConfig, ...] = (),
) -> MLP | Stack:
    config = MLPConfig(hidden=hidden, activation=activation, parts=parts or None)
    network = build_network(config, Inputs(4, plain=(0, 2, 3)), outputs, of_noise=1)
    assert isinstance(network, MLP | Stack)
    return network


def _state(network: MLP | Stack, *, homoscedastic: bool = False) -> BBBState:
    number = network.layout.num_weights
    rho = softplus_inverse(0.2) + 0.3 * _randn(number, seed=1)
    members = network.layout.members
    shape = (members, 1) if isinstance(network, Stack) else (1,)
    point = {"log_variance": torch.linspace(-1, 0, members).view(shape)} if homoscedastic else {}
    return BBBState(MeanFieldNormal(0.5 * _randn(number), rho), point)


def _both(
    network: MLP | Stack,
    likelihood: NumberLikelihood | ClassLikelihood,
    state: BBBState,
    *,
    rows: int = 150,
    sampler: str = "sobol",
    samples: int = 37,
    score: str | None = None,
    options: BatchOptions | None = None,
) -> tuple[Summary, Summary]:
    """The summaries by kernels and by torch, calibrated."""
    is_class = isinstance(likelihood, Categorical | Bernoulli)
    target = ClassTarget(tuple("abc"[: likelihood.num_classes])) if is_class else NUMBERS
    calibration = (
        ClassCalibration(temperature=1.3, rows=10)
        if is_class
        else NumberCalibration(variance_scale=1.4, residuals=(0.5, 1.0, 2.0), rows=3)
    )
    resolved = ResolvedOptions.of(
        options or BatchOptions(samples=samples, intervals=(0.5, 0.9)),
        seed=5, sampler=sampler, top=1, horizon=1,
    )  # fmt: skip
    engine = Engine(network, likelihood, target)  # type: ignore[arg-type]
    fitted, x = make_ready(network, state), _randn(rows, 4, seed=2)
    assert not hasattr(fitted, "source")
    (plain,) = engine.summaries(fitted, x, resolved, score, calibration)
    (found,) = replace(engine, compiles=True).summaries(fitted, x, resolved, score, calibration)
    return found, plain


def _assert_equal(found: Summary, expected: Summary) -> None:
    for some, others in ((found.values, expected.values), (found.errors, expected.errors)):
        assert some.keys() == others.keys()
        for name, values in others.items():
            tolerance = DIGITS * np.abs(values[np.isfinite(values)]).max(initial=1e-3)
            np.testing.assert_allclose(some[name], values, rtol=DIGITS, atol=tolerance)


@pytest.mark.parametrize(
    ("activation", "sampler"),
    [("relu", "sobol"), ("tanh", "monte_carlo"), ("silu", "moments"), ("gelu", "sobol")],
)
def test_every_activation_and_sampler(activation: str, sampler: str) -> None:
    network = _network(2, activation=activation)
    found = _both(network, HeteroscedasticGaussian(), _state(network), sampler=sampler, rows=9)
    _assert_equal(*found)


@pytest.mark.parametrize(("hidden", "rows"), [((), 1), ((6,), 3), ((5, 1, 9), 128), ((7,), 150)])
def test_every_depth_and_number_of_rows(hidden: tuple[int, ...], rows: int) -> None:
    """Of at most one hidden layer the mean is integrated, and has no error."""
    network = _network(2, hidden)
    found, plain = _both(network, HeteroscedasticGaussian(), _state(network), rows=rows)
    _assert_equal(found, plain)
    assert (len(hidden) < 2) == bool((found.errors["mean"] == 0).all())


@pytest.mark.parametrize(
    ("parts", "sampler", "samples"),
    [(DEEP, "sobol", 3), (DEEP, "moments", 40), (SHALLOW, "monte_carlo", 1)],
)
def test_members_of_any_shapes(parts: tuple[PartConfig, ...], samples: int, sampler: str) -> None:
    """With linear paths, inputs of their own, and fewer samples than members."""
    network, likelihood = _network(2, parts=parts), HeteroscedasticGaussian()
    state = _state(network)
    _assert_equal(*_both(network, likelihood, state, rows=4, samples=samples, sampler=sampler))


def test_a_pruned_network_keeps_its_live_units() -> None:
    network = _network(2, (30, 20))
    state = _state(network)
    loc, rho = state.posterior.loc, state.posterior.rho
    pruned = prune(MeanFieldNormal(loc, rho - _randn(len(rho), seed=3)), 0.97)
    fitted = make_ready(network, BBBState(pruned, {}))
    assert isinstance(fitted, Fitted)
    assert fitted.groups[0].live is not None
    _assert_equal(*_both(network, HeteroscedasticGaussian(), BBBState(pruned, {}), rows=5))


@pytest.mark.parametrize(
    ("parts", "sampler"),
    [((), "sobol"), ((PartConfig(members=3, hidden=(150, 150)),), "monte_carlo")],
)
def test_summaries_of_products(parts: tuple[PartConfig, ...], sampler: str) -> None:
    """Torch's products, the kernels' summaries."""
    for likelihood, outputs in ((Categorical(3), 3), (HeteroscedasticGaussian(), 2)):
        network = _network(outputs, hidden=(150, 150), parts=parts)
        posterior = _state(network).posterior
        narrow = MeanFieldNormal(0.2 * posterior.loc, posterior.rho - 1)  # its noise has no bounds
        state = BBBState(narrow, {})
        assert make_ready(network, state).packed is None  # type: ignore[union-attr]
        found, plain = _both(network, likelihood, state, rows=5, sampler=sampler)
        _assert_equal(found, plain)
        assert any(
            (found[name] != plain[name]).any() for name in plain.values
        )  # else it is torch's


def test_families_and_activations_that_loops_do_not_have_are_left_to_torch() -> None:
    assert Shape.of(ShapedLikelihood(NUMBERS, "cauchy")) is None  # type: ignore[arg-type]
    network = _network(2)
    fitted = make_ready(network, _state(network))
    assert isinstance(fitted, Fitted)
    (group,) = fitted.groups
    assert replace(fitted, groups=(replace(group, activation="softplus"),)).packed is None


def test_the_special_functions_have_all_digits(kernels: object) -> None:
    """exp within two ulp; the tail as exactly as a rounded z² in an exponent allows."""
    z = np.linspace(-26, 26, 4001)  # torch loses the digits of smaller tails
    exp = np.array([kernels.exp(20 * value) for value in z])  # type: ignore[attr-defined]
    np.testing.assert_allclose(exp, np.exp(20 * z), rtol=5e-16)
    tail = [
        kernels.upper_tail(value, math.exp(-0.5 * value**2))  # type: ignore[attr-defined]
        for value in z
    ]
    expected = 0.5 * torch.special.erfc(torch.from_numpy(np.abs(z) / math.sqrt(2))).numpy()
    np.testing.assert_allclose(tail, expected, rtol=5e-13)


def test_without_numba_torch_predicts_and_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    for name in ("elementary", "jit", "kernels", "shaped_kernels", "spread"):
        monkeypatch.delitem(sys.modules, f"models.prediction.compiled.{name}", raising=False)
    with caplog.at_level(logging.INFO):
        assert not Compiler().wait()
    (line,) = caplog.messages
    assert "numba" in line


def test_results_do_not_depend_on_the_threads() -> None:
    """All bits: a row's lane computes the same in every block of lanes."""
    network = build_network(MLPConfig(hidden=(60, 60)), Inputs(4), 2)
    random = torch.Generator().manual_seed(0)
    weights = torch.randn(network.layout.num_weights, generator=random)
    state = BBBState(MeanFieldNormal(0.1 * weights, torch.full_like(weights, -4.0)), {})
    fitted, x = make_ready(network, state), torch.randn(200, 4, generator=random)
    engine = Engine(network, HeteroscedasticGaussian(), NUMBERS, compiles=True)
    options = ResolvedOptions(
        samples=100, seed=5, sampler="sobol", top=1, horizon=1, intervals=(0.9,)
    )
    (alone,) = engine.summaries(fitted, x, options, None, None)
    parts = list(engine.summaries(fitted, x, options, None, None, threads=2))
    assert len(parts) == 2
    for name, values in alone.values.items():
        np.testing.assert_array_equal(np.concatenate([p[name] for p in parts]), values, name)


@pytest.mark.stack
def test_a_child_finds_what_is_cached_and_ends(kernels: ModuleType) -> None:
    assert is_cached(kernels)
    command = [sys.executable, "-P", "-m", "models.prediction.compiled"]
    subprocess.run(command, check=True, timeout=300)


ROWS = 5
FACTOR = 1.7
SHAPED_DIGITS = 3e-6  # of a standard deviation: float32 tails, and quadratures of the components
LEVELS = (1e-13, 0.0005, 0.05, 0.5, 0.6, 0.95, 0.9995, 1 - 1e-13)
_SCALES = ("identity", "bounded", "log")
KNOWN = [
    *(one for one in CASES if one.scale in _SCALES),
    Case("log", "logistic", 3),
    Case("identity", "logistic", 1),
    Case("identity", "normal", 2, (0.0,)),
    Case("identity", "logistic", 3, integer=True),
]  # fmt: skip


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
    assert (np.abs(error) / whole**power).max() < SHAPED_DIGITS


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
