"""The cheapest sampler that keeps a promise, and products that are rounded."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.config import MLPConfig, TrainingConfig
from models.likelihoods.number_mixture import NumberMixture
from models.prediction import products
from models.prediction.default_sampler.errors import (
    INDEPENDENT,
    LEVELS,
    SAMPLES_OF_RUN,
    truth_of,
)
from models.prediction.default_sampler.measure import measure_samplers
from models.prediction.default_sampler.record import Candidate, MeasuredSamplers
from models.prediction.fitted import Fitted
from models.prediction.local import Layer, LayerMoments
from models.prediction.options import PredictOptions, ResolvedOptions
from models.prediction.prediction import summarise
from models.prediction.products import (
    Bfloat16Layer,
    OneDnnLayer,
    SparseLayer,
    measure_rounding,
)
from models.prediction.summary import Summary
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained

LOCS, SPREADS, NOISES = (
    torch.linspace(low, high, 12, dtype=torch.float64)
    for low, high in ((-3.0, 3.0), (0.2, 2.0), (1.0, 0.5))
)
OPTIONS = ResolvedOptions(
    seed=0,
    sampler="monte_carlo",
    top=1,
    horizon=1,
    intervals=LEVELS,
    interval_kinds=("credible",),
    return_mc_errors=True,
)


def _summary(samples: int, seed: int, shift: float = 0.0, width: float = 1.0) -> Summary:
    """Of m_s ~ N(loc, spread²) with noise: predictions of N(loc, spread² + noise²)."""
    normals = torch.randn(samples, 1, generator=torch.Generator().manual_seed(seed)).double()
    means = LOCS + shift * (SPREADS**2 + NOISES**2).sqrt() + width * SPREADS * normals
    mixture = NumberMixture.gaussian(means, NOISES.square().expand_as(means))
    return summarise(mixture, OPTIONS, None)


def _measure(ways: dict[Candidate, tuple[float, float]]) -> MeasuredSamplers:
    """Candidates with a shift in standard deviations, and a factor on the means' deviation."""

    def summarised(
        candidate: Candidate, seeds: Sequence[int], *, errors: bool = False
    ) -> list[Summary]:
        shift, width = ways.get(candidate, (0.0, 1.0))
        samples, number = candidate.samples or 4_000, candidate.samples
        return [_summary(samples, 7 * seed + number, shift, width) for seed in seeds]

    return measure_samplers(summarised, list(ways), 100.0, len(LOCS))


def test_the_truth_is_that_of_the_known_distribution() -> None:
    runs = [_summary(SAMPLES_OF_RUN, 1_000 + seed) for seed in range(10)]
    truth = truth_of(runs, [_summary(INDEPENDENT, seed) for seed in range(8)])
    spread, variance = SPREADS.numpy(), (SPREADS**2 + NOISES**2).numpy()
    deviation = np.sqrt(variance)
    five = 5 * spread / math.sqrt(10_000)  # five standard errors
    assert np.all(np.abs(truth.values["mean"] - LOCS.numpy()) < five)
    upper = LOCS.numpy() + 1.6449 * deviation
    assert truth.values["upper_0.9"] == pytest.approx(upper, abs=0.1)
    assert truth.values["total_variance"] == pytest.approx(variance, rel=0.05)
    assert truth.scales["mean"] == pytest.approx(deviation, rel=0.03)
    promised = math.sqrt(np.square(spread / deviation / 10).mean())
    # The larger of the known one and that of eight seeds, whose rows share their draws: ±√(2/8)/2.
    assert promised * 0.97 < truth.promised["mean"].rms < 1.6 * promised


def test_the_cheapest_exact_candidate_is_chosen() -> None:
    few, many = Candidate("sobol", 8, 0, 8.0), Candidate("sobol", 1_000, 0, 30.0)
    biased, closed = Candidate("moments", 0, 16, 5.0), Candidate("moments", 0, 64, 20.0)
    found = _measure({biased: (0.5, 1), few: (0.0, 1), closed: (0.0, 1), many: (0.0, 1)})
    assert [one.exact for one in found.candidates] == [False, False, True, True]
    chosen, drawn = found.cheapest(), found.cheapest(drawing=True)
    assert chosen
    assert (chosen.sampler, chosen.nodes) == ("moments", 64)
    assert drawn
    assert (drawn.sampler, drawn.samples) == ("sobol", 1_000)
    assert found.nodes == 64
    first = found.candidates[0]
    assert first.bias["mean"] == pytest.approx(0.5, abs=0.05)  # the shift


@pytest.fixture(scope="module")
def model() -> TabularModel:
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 3))
    y = np.sin(2 * x[:, 0]) * x[:, 1] + 0.3 * random.normal(size=300)
    training = TrainingConfig(epochs=30, fine_tune_epochs=1, background=0)
    network = MLPConfig(hidden=(16, 16))
    return trained({"x": x, "y": y}, network=network, training=training, pruning=(0.5,))


def test_requests_without_samples_take_the_cheapest(model: TabularModel) -> None:
    measured = model.variant(0.0).samplers
    assert measured is not None
    cheapest, drawing = measured.cheapest(), measured.cheapest(drawing=True)
    assert cheapest is not None
    assert drawing is not None
    for sampler in (None, "auto"):
        found = model.resolve(PredictOptions(sampler=sampler))
        assert found.sampler == cheapest.sampler
        assert cheapest.samples in {0, found.samples}
    found = model.resolve(PredictOptions(return_mc_errors=True))
    assert (found.sampler, found.samples) == ("sobol", drawing.samples)


def test_answers_are_as_exact_as_promised(model: TabularModel) -> None:
    """New rows, against 40,000 samples: as 100 independent samples, within `mc_error`."""
    columns = {"x": np.random.default_rng(5).normal(size=(60, 3))}
    exact = [
        model.predict(columns, PredictOptions(samples=10_000, sampler="monte_carlo", seed=seed))
        for seed in range(4)
    ]
    truth = np.mean([one.mean for one in exact], axis=0)
    total = np.sqrt(exact[0].variance["total"])
    promised = np.sqrt(exact[0].variance["epistemic"] / 100)

    def size(values: np.ndarray) -> float:
        return float(np.sqrt(np.square(values / total).mean()))

    errors, stated = [], []
    for seed in range(8):
        answer = model.predict(columns, PredictOptions(seed=seed))
        assert answer["mc_error"] is not None
        errors.append(size(answer.mean - truth))
        stated.append(size(answer["mc_error"]))
    noise = size(promised) / math.sqrt(400)  # of the truth: 40,000 samples instead of 100
    error, bound = math.sqrt(np.square(errors).mean()), math.sqrt(np.square(stated).mean())
    assert error < 1.15 * size(promised) + noise  # other rows than the measured ones
    assert error < 1.5 * bound + noise


def test_moments_state_their_bias_and_no_other_error(model: TabularModel) -> None:
    """An answer is that of the sampler which it names, `mc_error` included."""
    measured = model.variant(0.0).samplers
    assert measured is not None
    closed = [one for one in measured.candidates if one.sampler == "moments"]
    assert closed
    forced = replace(measured, candidates=(replace(closed[-1], exact=True, operations=0.0),))
    variants = dict(model.variants_by_prune)
    variants[0.0] = replace(variants[0.0], samplers=forced)
    chosen = model.with_variants(variants)
    columns = {"x": np.random.default_rng(6).normal(size=(5, 3))}
    answer = chosen.predict(columns, PredictOptions())
    assert (answer.sampler, answer.samples) == ("moments", 0)
    assert answer["mc_error"] is not None
    deviation = np.sqrt(answer.variance["total"])
    assert answer["mc_error"] == pytest.approx(closed[-1].bias["mean"] * deviation)
    again = chosen.predict(columns, PredictOptions(sampler="moments"))
    assert np.array_equal(again.mean, answer.mean)
    assert again["mc_error"] is not None
    assert np.array_equal(again["mc_error"], answer["mc_error"])


Kind = Callable[[LayerMoments], Layer]
KINDS: list[tuple[Kind, float]] = [
    (OneDnnLayer, 1e-5),
    (SparseLayer.of, 1e-5),
    (Bfloat16Layer.of, 2**-7),
]


def _layer(outputs: int, inputs: int, density: float = 1.0) -> LayerMoments:
    random = torch.Generator().manual_seed(0)
    kept = torch.rand(outputs, inputs, generator=random) < density
    weight = torch.rand(2, outputs, inputs, generator=random) * kept
    bias = torch.rand(2, 1, outputs, generator=random)
    return LayerMoments(weight.unsqueeze(0), bias.unsqueeze(0))


@pytest.fixture(scope="module")
def large() -> TabularModel:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 200))
    columns = {"a": a, "b": b, "y": np.sin(2 * a) * b + 0.1 * random.normal(size=200)}
    training = TrainingConfig(epochs=3, fine_tune_epochs=0, background=0)
    network = MLPConfig(hidden=(256, 256))
    return trained(columns, network=network, training=training, pruning=(0.95,))


@pytest.mark.parametrize(("kind", "digits"), KINDS)
@pytest.mark.parametrize("samples", [1, 30])
def test_each_kind_is_the_dense_layers_twin(
    kind: Kind, digits: float, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the digits that its numbers have."""
    monkeypatch.setattr(products, "_MIN_PRODUCTS", 0)
    dense = _layer(80, 70, density=0.1)
    twin = kind(dense)
    x = torch.rand(1, 1, 4 * samples, 70, generator=torch.Generator().manual_seed(1))
    found, expected = torch.empty(2, 1, 2, 4 * samples, 80)
    twin.into(x.repeat(1, 2, 1, 1), found)
    dense.into(x.repeat(1, 2, 1, 1), expected)
    torch.testing.assert_close(found, expected, rtol=digits, atol=digits)
    for own, other in zip(twin.of_gaussian(x[0], x[0]), dense.of_gaussian(x[0], x[0]), strict=True):
        torch.testing.assert_close(own, other)


def test_rounding_is_measured_in_predictive_deviations() -> None:
    """A mean moved by 1 at deviations of 10 and 20, a deviation moved by a tenth."""
    variances = dict.fromkeys(("aleatoric_variance", "epistemic_variance"), np.array([50.0, 200.0]))
    errors = {"mean": np.array([1.0, 2.0]), "total_variance": np.array([2.0, 8.0])}
    exact = Summary(values={"mean": np.zeros(2), **variances}, errors=errors)
    wider = {name: 1.21 * values for name, values in variances.items()}
    found = measure_rounding(exact, exact.with_values(mean=np.ones(2), **wider), 2**14)
    assert found is not None
    assert found.mean == pytest.approx(np.sqrt((0.1**2 + 0.05**2) / 2))
    assert found.deviation == pytest.approx(0.1)
    assert found.error_of_mean == pytest.approx(0.1)
    assert found.error_of_deviation == pytest.approx(0.01)  # d s = d s² ÷ 2s


def test_training_measures_the_rounding_of_large_layers(large: TabularModel) -> None:
    """The measured shifts hold for other rows, and bfloat16 is allowed where they are hidden."""
    variant = large.variant(0.0)
    assert variant.rounding is not None
    assert variant.rounded == (variant.rounding.weights if variant.rounding.is_hidden else None)
    assert variant.describe()["rounding"]["mean"] == variant.rounding.mean
    random = np.random.default_rng(5)
    x = large.encode({"a": random.normal(size=200), "b": random.normal(size=200)})
    exact, short = replace(large), replace(large)
    fitted = large.fitted(0.0)
    assert isinstance(fitted, Fitted)
    vars(short)["_fitted"][0.0] = fitted.rounded()
    options = PredictOptions(sampler="monte_carlo", intervals=())
    before, after = exact.predict_rows(x, options), short.predict_rows(x, options)
    shift = (after.mean - before.mean) / np.sqrt(before.variance["total"])
    assert 0 < np.sqrt(np.square(shift).mean()) < 3 * variant.rounding.mean
