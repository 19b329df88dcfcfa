"""Which sampler answers a request without samples: what training measures, and what holds then."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.config import MLPConfig, TrainingConfig
from models.likelihoods.number_mixture import NumberMixture
from models.prediction.default_sampler.errors import (
    INDEPENDENT,
    LEVELS,
    SAMPLES_OF_RUN,
    truth_of,
)
from models.prediction.default_sampler.measure import measure_samplers
from models.prediction.default_sampler.record import Candidate, MeasuredSamplers
from models.prediction.options import PredictOptions, ResolvedOptions
from models.prediction.prediction import summarise
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
