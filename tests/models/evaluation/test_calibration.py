"""Calibration: scales, temperatures, conformal intervals, and repeated rows by weight."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from models.config import (
    BBBConfig,
    FeatureConfig,
    MLPConfig,
    ModelConfig,
    SplitBy,
    SplitTime,
    TrainingConfig,
)
from models.evaluation.abstention import selective_metrics
from models.evaluation.calibration import (
    Calibration,
    ClassCalibration,
    LabelledMixture,
    NumberCalibration,
    fit_calibration,
    fit_scale,
)
from models.evaluation.conformal_rank import order_statistics
from models.evaluation.metrics import row_scores, summarise
from models.exceptions import InvalidInput
from models.features.columns import ColumnProfile, Columns
from models.features.splits import Division, divide_rows
from models.likelihoods.mixture import CategoricalMixture, Mixture
from models.likelihoods.number_mixture import NumberMixture
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train
from tests.models.conftest import assert_close

QUICK = TrainingConfig(epochs=4, batch_size=64, learning_rate=0.01, fine_tune_epochs=1)
X = {"x": np.linspace(-1, 1, 5)}


def _line(rows: int = 200) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, rows)
    return {"x": x, "y": 1000 + 300 * x + random.normal(0, 30, rows)}


def _train(columns: Columns, **config: object) -> TabularModel:
    kind = "number" if columns["y"].dtype == float else "category"
    types = dict.fromkeys(columns, "number") | {"y": kind}
    profiles = [ColumnProfile(name=name, type=types[name], min=0, max=1) for name in columns]
    options: dict[str, object] = {
        "target": "y",
        "features": (FeatureConfig(name="x", type="number"),),
        "network": MLPConfig(hidden=(8,)),
        "training": QUICK,
        "pruning": (0.5,),
        **config,
    }
    if "method" in options and not isinstance(options["method"], BBBConfig):
        options["pruning"] = ()
    wanted = ModelConfig(**options)  # type: ignore[arg-type]
    return train(columns, types, resolve(wanted, profiles, len(columns["y"])))


@pytest.fixture(scope="module")
def line() -> TabularModel:
    return _train(_line())


def _gaussian(mean: float, variance: float, rows: int) -> NumberMixture:
    shape = (1, rows)
    return NumberMixture.gaussian(
        torch.full(shape, mean, dtype=torch.float64),
        torch.full(shape, variance, dtype=torch.float64),
    )


def _seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("factor", [0.1, 30.0])
def test_a_variance_that_is_wrong_by_a_factor_is_put_right(factor: float) -> None:
    """5,000 rows know log c to √(2/5000) = 0.02; four of that."""
    y = torch.randn(5_000, generator=_seeded(), dtype=torch.float64)
    found = fit_scale([LabelledMixture(_gaussian(0.0, 1 / factor, len(y)), y, None)])
    assert math.log(found) == pytest.approx(math.log(factor), abs=0.08)


@pytest.mark.parametrize("factor", [0.4, 3.0])
def test_logits_that_are_too_large_by_a_factor_get_it_as_temperature(factor: float) -> None:
    logits = 2 * torch.randn(20_000, 3, generator=_seeded(), dtype=torch.float64)
    labels = torch.multinomial(logits.softmax(-1), 1, generator=_seeded(1)).squeeze(1)
    mixture = CategoricalMixture((factor * logits).unsqueeze(0))
    found = fit_scale([LabelledMixture(mixture, labels, None)])
    assert found == pytest.approx(factor, rel=0.05)


@pytest.mark.parametrize("rows", [19, 39])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_conformal_intervals_cover_as_promised_whatever_the_model(rows: int, level: float) -> None:
    """3,000 sets of rows and a new one of each, of a heavy-tailed y about x²; the model says
    N(0, 0.01² e^x). With n + 1 a multiple of 20 the coverage is the level, within 4 deviations.
    """
    sets = 3_000
    x = torch.randn(sets, rows + 1, generator=_seeded(), dtype=torch.float64)
    noise = torch.randn(2, sets, rows + 1, generator=_seeded(1), dtype=torch.float64)
    y = x.square() + noise[0] / noise[1]
    variances = 1e-4 * x.exp().reshape(1, -1)
    wrong = NumberMixture.gaussian(torch.zeros(1, y.numel()).double(), variances)
    found = NumberCalibration.scores(wrong, y.flatten()).view_as(y)
    covered = [
        one[-1] <= NumberCalibration(1.0, order_statistics(one[:-1])[0], rows).score(level)
        for one in found
    ]
    error = math.sqrt(level * (1 - level) / sets)
    assert np.mean(covered) == pytest.approx(level, abs=4 * error)


def test_the_half_width_is_an_order_statistic_or_unbounded() -> None:
    nine = NumberCalibration(1.0, tuple(float(k) for k in range(1, 10)), 9)
    found = [nine.score(level) for level in (1e-12, 0.1, 0.5, 0.51, 0.9, 0.91)]
    assert found == [1.0, 1.0, 5.0, 6.0, 9.0, math.inf]
    assert NumberCalibration(1.0, (), 0).score(0.5) == math.inf


def _sets(division: Division) -> list[np.ndarray]:
    return [division.training, division.stopping, division.calibration, division.scores]


@pytest.mark.parametrize("split", ["random", "last", SplitTime(time="t"), SplitBy(by="g")])
def test_the_sets_are_disjoint(split: object) -> None:
    config = TrainingConfig(split=split, calibration_fraction=0.1, stopping_fraction=0.1)  # type: ignore[arg-type]
    key = {
        SplitTime: np.random.default_rng(0).permutation(300).astype(float),
        SplitBy: np.random.default_rng(0).choice(60, 300).astype(float),
    }.get(type(split))  # type: ignore[call-overload]
    sets = _sets(divide_rows(config, 300, key))
    assert sorted(np.concatenate(sets).tolist()) == list(range(300))
    if isinstance(split, SplitBy):
        groups = [set(key[one]) for one in sets]  # type: ignore[index]
        assert sum(map(len, groups)) == len(set.union(*groups))
        return
    assert [len(one) for one in sets] == [201, 30, 39, 30]
    if split != "random":
        time = np.arange(300) if key is None else key
        for earlier, later in pairwise(sets):
            assert time[earlier].max() < time[later].min()


def test_a_small_table_is_not_calibrated_and_says_so() -> None:
    model = _train(_line(60), pruning=())
    assert any(note.startswith("not calibrated: 60 rows") for note in model.notes)
    assert model.variant(0.0).calibration is None
    (interval,) = model.predict(X, PredictOptions()).intervals
    assert interval.kind == "credible"


def test_the_answer_is_the_calibrated_mixture(line: TabularModel) -> None:
    variant = line.variant(0.0)
    plain, doubled = (
        replace(line, variants_by_prune={0.0: replace(variant, calibration=calibration)})
        for calibration in (None, NumberCalibration(4.0, (0.5, 1.0, 1.5), 3))
    )
    options = PredictOptions(samples=64, intervals=(0.5, 0.9), return_draws=True)
    before, after = (model.predict(X, options) for model in (plain, doubled))
    np.testing.assert_allclose(after.mean, before.mean)
    for kind, values in before.variance.items():
        np.testing.assert_allclose(after.variance[kind], 4 * values)
    np.testing.assert_allclose(after.draws.mean(0), before.draws.mean(0))
    np.testing.assert_allclose(after.draws.std(0), 2 * before.draws.std(0))
    kinds = [(interval.kind, interval.level) for interval in after.intervals]
    assert kinds == [("credible", 0.5), ("credible", 0.9), ("conformal", 0.5), ("conformal", 0.9)]
    half, unbounded = after.intervals[2:]
    np.testing.assert_allclose(half.upper - after.mean, np.sqrt(after.variance["total"]))
    np.testing.assert_allclose(after.mean - half.lower, half.upper - after.mean)
    assert np.isposinf(unbounded.upper).all()
    assert len(before.intervals) == 2
    (only,) = doubled.predict(X, replace(options, interval_kinds=("conformal",))).intervals[1:]
    np.testing.assert_array_equal(only.upper, unbounded.upper)


def test_classes_have_a_temperature_and_sets_for_intervals() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=300)
    label = np.where(x + random.normal(size=300) > 0, "above", "below").astype(object)
    label[:2] = "rare"  # wherever they land, training and scoring go on
    model = _train({"x": x, "y": label}, pruning=())
    variant = model.variant(0.0)
    assert isinstance(variant.calibration, ClassCalibration)
    assert {"ece", "ece_adaptive", "brier"} < variant.metrics.keys()
    uncalibrated = {"log_likelihood", "ece", "ece_expected", "ece_debiased"}
    assert variant.metrics["uncalibrated"].keys() == uncalibrated
    sharp = replace(variant, calibration=ClassCalibration(0.01, 39))
    certain = replace(model, variants_by_prune={0.0: sharp})
    answers = [one.predict(X, PredictOptions()) for one in (model, certain)]
    assert answers[1].mean.max(1).min() > answers[0].mean.max(1).min()
    for answer in answers:
        np.testing.assert_allclose(answer.mean.sum(1), 1)
        assert answer.intervals == ()
    only = PredictOptions(interval_kinds=("conformal",), set_level=0.9)
    assert "conformal_set" in model.predict(X, only).values
    for one, options in ((model, replace(only, set_level=None)), (certain, only)):
        with pytest.raises(InvalidInput) as caught:
            one.resolve(options)
        assert caught.value.path == "/interval_kinds"


ROWS = 47
RANDOM = np.random.default_rng(3)
WEIGHTS = torch.from_numpy(RANDOM.integers(0, 5, ROWS).astype(np.float32))
TIMES = WEIGHTS.long()
MEAN = torch.from_numpy(RANDOM.normal(size=ROWS))
NUMBERS = MEAN + torch.from_numpy(RANDOM.normal(size=ROWS))
LOGITS = torch.from_numpy(RANDOM.normal(size=(2, ROWS, 3)))
CLASSES = torch.from_numpy(RANDOM.integers(0, 3, ROWS))


def _numbers(rows: Tensor) -> tuple[Mixture, Tensor]:
    means = torch.stack([MEAN[rows], MEAN[rows] + 0.1])
    return NumberMixture.gaussian(means, torch.full_like(means, 0.5)), NUMBERS[rows]


def _classes(rows: Tensor) -> tuple[Mixture, Tensor]:
    return CategoricalMixture(LOGITS[:, rows]), CLASSES[rows]


Make = Callable[[Tensor], tuple[Mixture, Tensor]]


def _both(make: Make) -> tuple[LabelledMixture, LabelledMixture]:
    """Rows with weights, and the same rows repeated."""
    every = torch.arange(ROWS)
    return LabelledMixture(*make(every), WEIGHTS), LabelledMixture(
        *make(every.repeat_interleave(TIMES)), None
    )


def _calibrate(one: LabelledMixture) -> Calibration:
    return fit_calibration([one], [one])


@pytest.mark.parametrize("make", [_numbers, _classes])
def test_calibration_and_all_metrics_are_those_of_repeated_rows(make: Make) -> None:
    weighted, repeated = _both(make)
    scores = row_scores(weighted, _calibrate(weighted))
    others = row_scores(repeated, _calibrate(repeated))
    found = summarise(scores) | selective_metrics(scores)
    assert found["weight"] == float(WEIGHTS.sum()) == len(repeated.targets)
    assert found["rows"] == int((WEIGHTS > 0).sum())
    wanted = summarise(others) | selective_metrics(others)
    assert_close(found, wanted, ignored=("rows", "weight"))


def test_conformal_quantiles_are_those_of_repeated_rows() -> None:
    found, wanted = map(_calibrate, _both(_numbers))
    for level in (0.05, 0.5, 0.9, 0.995):
        assert found.score(level) == pytest.approx(wanted.score(level), rel=1e-6)
