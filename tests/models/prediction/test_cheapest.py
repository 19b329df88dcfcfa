"""Which sampler answers a request without samples: what training measures, and what holds then."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.evaluation.path_calibration import PathCalibration
from models.features.columns import ColumnProfile
from models.prediction.cheapest.errors import (
    INDEPENDENT,
    LEVELS,
    SAMPLES_OF_RUN,
    Spread,
    total_deviation,
    truth_of,
    with_bias,
)
from models.prediction.cheapest.measure import measure_samplers
from models.prediction.cheapest.record import Candidate, MeasuredSampler, MeasuredSamplers
from models.prediction.options import PredictOptions, ResolvedOptions, Sampler
from models.prediction.prediction import Arrays, summarise
from models.prediction.predictive import CategoricalMixture, GaussianMixture
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

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


def _summary(samples: int, seed: int, shift: float = 0.0, width: float = 1.0) -> Arrays:
    """Of m_s ~ N(loc, spread²) with noise: predictions of N(loc, spread² + noise²)."""
    normals = torch.randn(samples, 1, generator=torch.Generator().manual_seed(seed)).double()
    means = LOCS + shift * (SPREADS**2 + NOISES**2).sqrt() + width * SPREADS * normals
    mixture = GaussianMixture(means, NOISES.square().expand_as(means))
    return summarise(mixture, OPTIONS, None)


def _measure(ways: dict[Candidate, tuple[float, float]]) -> MeasuredSamplers:
    """Candidates with a shift in standard deviations, and a factor on the means' deviation."""

    def summarised(
        candidate: Candidate, seeds: Sequence[int], *, errors: bool = False
    ) -> list[Arrays]:
        shift, width = ways.get(candidate, (0.0, 1.0))
        samples, number = candidate.samples or 4_000, candidate.samples
        return [_summary(samples, 7 * seed + number, shift, width) for seed in seeds]

    return measure_samplers(summarised, list(ways), 100.0, len(LOCS))


def test_the_high_quantile_of_normals_is_that_of_a_simulation() -> None:
    deviations = np.linspace(0.1, 2.0, 10)
    errors = np.random.default_rng(0).normal(size=(100_000, 10)) * deviations
    expected, simulated = Spread.of_normals(deviations), Spread.of(errors)
    assert expected.rms == pytest.approx(simulated.rms, rel=0.01)  # 1,000,000 values: 0.1 %
    assert expected.high == pytest.approx(simulated.high, rel=0.02)  # 64 quantiles of each


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


def test_a_wrong_variance_alone_is_not_exact() -> None:
    closed = Candidate("moments", 0, 16, 5.0)
    found = _measure({closed: (0.0, 1.4)})
    assert not found.candidates[0].exact
    assert found.candidates[0].errors["mean"] < 1 < found.candidates[0].errors["epistemic_variance"]
    assert found.cheapest() is None
    assert found.nodes is None


def test_noise_is_no_bias() -> None:
    """The mean of 25 independent samples has noise of 0.2 spreads, and no bias."""
    found = _measure({Candidate("sobol", 25, 0, 25.0): (0.0, 1.0)})
    noise = math.sqrt((SPREADS**2 / (SPREADS**2 + NOISES**2) / 25).mean())
    assert found.candidates[0].bias["mean"] < 0.6 * noise  # of eight seeds' mean: noise ÷ √8


def test_errors_hold_noise_and_bias() -> None:
    summary = _summary(INDEPENDENT, 3)
    deviation = total_deviation(summary)
    found = with_bias(summary, {"mean": 0.3, "total_variance": 0.2})
    assert found["mc_error"] == pytest.approx(np.hypot(summary["mc_error"], 0.3 * deviation))
    name = "error of total_variance"
    assert found[name] == pytest.approx(np.hypot(summary[name], 0.2 * deviation**2))
    assert np.array_equal(found["error of median"], summary["error of median"])


def test_errors_of_classes_hold_the_bias_of_probabilities_and_of_entropies() -> None:
    logits = torch.randn(50, 4, 3, generator=torch.Generator().manual_seed(0)).double()
    summary = summarise(CategoricalMixture(logits), OPTIONS, None)
    found = with_bias(summary, {"probabilities": 0.3, "expected_entropy": 0.2})
    deviation = total_deviation(summary)
    assert found["mc_error"] == pytest.approx(np.hypot(summary["mc_error"], 0.3 * deviation))
    name = "error of expected_entropy"
    assert found[name].shape == (4,)
    assert found[name] == pytest.approx(np.hypot(summary[name], 0.2))


@pytest.fixture(scope="module")
def model() -> TabularModel:
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 3))
    y = np.sin(2 * x[:, 0]) * x[:, 1] + 0.3 * random.normal(size=300)
    profiles = [ColumnProfile(name="x", type="tensor", shape=(3,))]
    profiles.append(ColumnProfile(name="y", type="number"))
    config = ModelConfig(
        target="y",
        network=MLPConfig(hidden=(16, 16)),
        training=TrainingConfig(epochs=30, fine_tune_epochs=1),
        pruning=(0.5,),
    )
    types = {"x": "tensor", "y": "number"}
    columns = {"x": x, "y": y}
    return train(columns, types, resolve(config, profiles, len(x)))


def test_every_variant_is_measured(model: TabularModel) -> None:
    for prune in model.variants:
        measured = model.variant(prune).samplers
        assert measured is not None
        assert measured.rows >= 10
        assert measured.candidates
        operations = [one.operations for one in measured.candidates]
        assert operations == sorted(operations)
        assert max(operations) < measured.default_operations


@pytest.mark.parametrize("sampler", ["monte_carlo", "sobol", "moments"])
def test_seeds_beside_each_other_give_what_each_gives_alone(
    model: TabularModel, sampler: Sampler
) -> None:
    x, fitted = model.encode({"x": np.random.default_rng(1).normal(size=(7, 3))}), model.fitted(0.0)
    options = model.resolve(PredictOptions(sampler=sampler, samples=50, return_mc_errors=True))
    calibration = model.variant(0.0).calibration
    assert not isinstance(calibration, PathCalibration)
    beside = model.engine.summaries_of_seeds(fitted, x, options, (3, 4), calibration)
    for seed, found in zip((3, 4), beside, strict=True):
        asked = replace(options, seed=seed)
        (alone,) = model.engine.summaries(fitted, x, asked, None, calibration)
        assert found.keys() == alone.keys()
        for name, values in alone.items():
            assert found[name] == pytest.approx(values, rel=1e-9, abs=1e-12)


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


@pytest.mark.parametrize(
    "options",
    [
        PredictOptions(samples=100),
        PredictOptions(samples=100, sampler="auto"),
        PredictOptions(sampler="sobol"),
        PredictOptions(return_draws=True),
        PredictOptions(target_mc_error=0.1),
    ],
)
def test_what_is_asked_for_is_drawn(model: TabularModel, options: PredictOptions) -> None:
    found = model.resolve(options)
    assert (found.sampler, found.samples) == ("sobol", 100)


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
        assert answer.mc_error is not None
        errors.append(size(answer.mean - truth))
        stated.append(size(answer.mc_error))
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
    assert answer.mc_error is not None
    deviation = np.sqrt(answer.variance["total"])
    assert answer.mc_error == pytest.approx(closed[-1].bias["mean"] * deviation)
    again = chosen.predict(columns, PredictOptions(sampler="moments"))
    assert np.array_equal(again.mean, answer.mean)
    assert again.mc_error is not None
    assert np.array_equal(again.mc_error, answer.mc_error)


def test_versions_without_a_measurement_draw_as_before(model: TabularModel) -> None:
    older = model.with_variants({0.0: replace(model.variant(0.0), samplers=None)})
    found = older.resolve(PredictOptions())
    assert (found.sampler, found.samples) == ("sobol", 100)
    columns = {"x": np.zeros((1, 3))}
    assert older.predict(columns, PredictOptions(sampler="moments")).mc_error is None


def test_an_artifact_keeps_the_measurement(model: TabularModel, tmp_path: Path) -> None:
    write_model(model, tmp_path / "model")
    again = read_model(tmp_path / "model")
    for prune in model.variants:
        assert again.variant(prune).samplers == model.variant(prune).samplers
    columns = {"x": np.random.default_rng(7).normal(size=(3, 3))}
    before, after = (m.predict(columns, PredictOptions()) for m in (model, again))
    assert after.mean == pytest.approx(before.mean, rel=1e-4)
    assert (after.sampler, after.samples) == (before.sampler, before.samples)


def test_only_the_measured_numbers_have_a_bias() -> None:
    one = MeasuredSampler("sobol", 16, 0, 1.0, errors={}, exact=True, bias={"mean": 0.1})
    measured = MeasuredSamplers(20, 100.0, (one,))
    assert measured.bias_of("sobol", 16) == {"mean": 0.1}
    assert measured.bias_of("sobol", 100) == measured.bias_of("moments", 100) == {}


def test_a_version_tells_what_answers_without_samples(model: TabularModel) -> None:
    measured, told = model.variant(0.0).samplers, model.variant(0.0).describe()["auto"]
    assert measured is not None
    chosen = measured.cheapest()
    assert chosen is not None
    assert (told["sampler"], told["samples"]) == (chosen.sampler, chosen.samples)
    assert max(told["errors"].values()) <= 1
    assert 0 < told["cost"] < 1
    none = replace(model.variant(0.0), samplers=replace(measured, candidates=()))
    assert "auto" not in none.describe()
