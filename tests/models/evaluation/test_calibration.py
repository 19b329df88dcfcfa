"""Calibration against known factors and guarantees, and who sees which rows."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import (
    BBBConfig,
    EnsembleConfig,
    FeatureConfig,
    MLPConfig,
    ModelConfig,
    SplitBy,
    SplitTime,
    TrainingConfig,
)
from models.evaluation.calibration import (
    PENALTY_SCALE,
    ClassCalibration,
    LabelledMixture,
    NumberCalibration,
    fit_scale,
    residuals,
)
from models.evaluation.conformal_rank import MAX_RESIDUALS, order_statistics
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import ColumnProfile, Columns
from models.features.splits import Division, calibration_rows, divide_rows
from models.prediction.answers.class_sets import ClassSets
from models.prediction.options import PredictOptions
from models.prediction.prediction import Interval, RowPrediction
from models.prediction.predictive import CategoricalMixture, GaussianMixture
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

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


def _gaussian(mean: float, variance: float, rows: int) -> GaussianMixture:
    shape = (1, rows)
    return GaussianMixture(
        torch.full(shape, mean, dtype=torch.float64),
        torch.full(shape, variance, dtype=torch.float64),
    )


def _seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("factor", [0.1, 1.0, 30.0])
def test_a_variance_that_is_wrong_by_a_factor_is_put_right(factor: float) -> None:
    """5,000 rows know log c to √(2/5000) = 0.02; four of that."""
    y = torch.randn(5_000, generator=_seeded(), dtype=torch.float64)
    found = fit_scale([LabelledMixture(_gaussian(0.0, 1 / factor, len(y)), y, None)])
    assert math.log(found) == pytest.approx(math.log(factor), abs=0.08)


def test_few_rows_say_little() -> None:
    """The maximum of −½ n u − ½ R e^−u − u²/2τ² in u = log c is where its derivative vanishes."""
    y = torch.tensor([3.0, -2.0, 2.5, 4.0], dtype=torch.float64)
    rows = float(y.square().sum())
    u = math.log(fit_scale([LabelledMixture(_gaussian(0.0, 1.0, 4), y, None)]))
    assert -2 + 0.5 * rows * math.exp(-u) - u / PENALTY_SCALE**2 == pytest.approx(0, abs=5e-3)
    assert 0 < u < math.log(rows / 4)


def test_a_row_of_weight_two_counts_as_two_rows() -> None:
    y = torch.tensor([0.5, 3.0, 3.0], dtype=torch.float64)
    weights = torch.tensor([1.0, 2.0])
    weighed = fit_scale([LabelledMixture(_gaussian(0.0, 1.0, 2), y[:2], weights)])
    twice = fit_scale([LabelledMixture(_gaussian(0.0, 1.0, 3), y, None)])
    assert weighed == pytest.approx(twice)


def test_chunks_of_rows_are_as_all_at_once() -> None:
    y = torch.randn(50, generator=_seeded(), dtype=torch.float64)
    whole = fit_scale([LabelledMixture(_gaussian(0.0, 0.2, 50), y, None)])
    parts = [LabelledMixture(_gaussian(0.0, 0.2, len(part)), part, None) for part in y.split(20)]
    assert fit_scale(parts) == pytest.approx(whole)


@pytest.mark.parametrize("factor", [0.4, 3.0])
def test_logits_that_are_too_large_by_a_factor_get_it_as_temperature(factor: float) -> None:
    logits = 2 * torch.randn(20_000, 3, generator=_seeded(), dtype=torch.float64)
    labels = torch.multinomial(logits.softmax(-1), 1, generator=_seeded(1)).squeeze(1)
    mixture = CategoricalMixture((factor * logits).unsqueeze(0))
    found = fit_scale([LabelledMixture(mixture, labels, None)])
    assert found == pytest.approx(factor, rel=0.05)


def test_a_temperature_divides_the_logits_of_one_logit_or_several() -> None:
    logits = 3 * torch.randn(4, 5, 3, generator=_seeded(), dtype=torch.float64)
    several = CategoricalMixture(logits).tempered(2.5)
    torch.testing.assert_close(several.probs, (logits / 2.5).softmax(-1))
    one = logits[..., :1]
    two = CategoricalMixture(torch.cat([torch.zeros_like(one), one], -1)).tempered(2.5)
    torch.testing.assert_close(two.probs[..., 1:], torch.sigmoid(one / 2.5))
    certain = CategoricalMixture(torch.tensor([[[1.0, 0.0]]]).double().log()).tempered(3.0)
    assert certain.probs.tolist() == [[[1.0, 0.0]]]


def test_scaling_keeps_the_mean_and_the_shares() -> None:
    means, noise, spread = torch.rand(3, 6, 4, generator=_seeded(), dtype=torch.float64)
    integrated = means[:1] + 0.1, spread[:1]
    for one in (
        GaussianMixture(means, noise),
        GaussianMixture(means, noise, spread),
        GaussianMixture(means, noise, spread, integrated),
    ):
        scaled = one.scaled(4.0)
        torch.testing.assert_close(scaled.mean(), one.mean())
        torch.testing.assert_close(scaled.aleatoric(), 4 * one.aleatoric())
        torch.testing.assert_close(scaled.epistemic(), 4 * one.epistemic())
        centre = one.means.mean(0)
        for level in (0.05, 0.7):
            expected = centre + 2 * (one.quantile(level) - centre)
            torch.testing.assert_close(scaled.quantile(level), expected)


@pytest.mark.parametrize("rows", [19, 39])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_conformal_intervals_cover_as_promised_whatever_the_model(rows: int, level: float) -> None:
    """3,000 sets of rows and a new one of each, of a heavy-tailed y about x²; the model says
    N(0, 0.01² e^x). With n + 1 a multiple of 20 the coverage is the level, within 4 deviations.
    """
    sets = 3_000
    x = torch.randn(sets, rows + 1, generator=_seeded(), dtype=torch.float64)
    noise = torch.randn(2, sets, rows + 1, generator=_seeded(1), dtype=torch.float64)
    y = x.square() + noise[0] / noise[1]
    wrong = GaussianMixture(torch.zeros(1, y.numel()).double(), 1e-4 * x.exp().reshape(1, -1))
    found = residuals(wrong, y.flatten()).view_as(y)
    covered = [
        one[-1] <= NumberCalibration(1.0, order_statistics(one[:-1])[0], rows).half_width(level)
        for one in found
    ]
    error = math.sqrt(level * (1 - level) / sets)
    assert np.mean(covered) == pytest.approx(level, abs=4 * error)


def test_the_half_width_is_an_order_statistic_or_unbounded() -> None:
    nine = NumberCalibration(1.0, tuple(float(k) for k in range(1, 10)), 9)
    found = [nine.half_width(level) for level in (0.05, 0.1, 0.5, 0.51, 0.9, 0.91)]
    assert found == [1.0, 1.0, 5.0, 6.0, 9.0, math.inf]
    assert NumberCalibration(1.0, (), 0).half_width(0.5) == math.inf
    usual = (0.5, 0.8, 0.9, 0.95)
    for n in range(19, 400, 20):
        ranks = NumberCalibration(1.0, tuple(map(float, range(1, n + 1))), n)
        exact = [round((n + 1) * level, 6) for level in usual]
        assert [ranks.half_width(level) for level in usual] == exact


def test_residuals_that_are_left_out_make_no_interval_smaller() -> None:
    values = torch.randperm(25_000, generator=_seeded()).double() + 1
    kept = NumberCalibration(1.0, order_statistics(values)[0], 25_000)
    assert len(kept.residuals) == MAX_RESIDUALS
    for level in (0.001, 0.5, 0.9, 0.95, 0.9999):
        assert kept.half_width(level) >= math.ceil(25_001 * level - 1e-9)
        assert kept.half_width(level) <= 25_001 * level + 4


@pytest.mark.parametrize(
    ("fraction", "rows", "expected"),
    [(0.1, 94, 0), (0.1, 95, 19), (0.1, 285, 19), (0.1, 295, 39), (0.1, 1_000, 99),
     (0.5, 40, 19), (0.0, 10_000, 0), (0.1, 10, 0)],
)  # fmt: skip
def test_calibration_rows_are_one_less_than_a_multiple_of_twenty(
    fraction: float, rows: int, expected: int
) -> None:
    assert calibration_rows(fraction, rows) == expected


def _sets(division: Division) -> list[np.ndarray]:
    return [division.training, division.stopping, division.calibration, division.scores]


@pytest.mark.parametrize("split", ["random", "last", SplitTime(time="t"), SplitBy(by="g")])
def test_the_three_sets_are_disjoint(split: object) -> None:
    config = TrainingConfig(split=split, calibration_fraction=0.1, stopping_fraction=0.1)  # type: ignore[arg-type]
    key = {
        SplitTime: np.random.default_rng(0).permutation(300).astype(float),
        SplitBy: np.random.default_rng(0).choice(60, 300).astype(float),
    }.get(type(split))  # type: ignore[call-overload]
    division = divide_rows(config, 300, key)
    sets = _sets(division)
    assert sorted(np.concatenate(sets).tolist()) == list(range(300))
    _, stopping, calibration, scores = sets
    assert len(scores) >= 30
    assert len(calibration) >= 39
    assert len(stopping) >= 30
    if isinstance(split, SplitBy):
        groups = [set(key[one]) for one in sets]  # type: ignore[index]
        assert sum(map(len, groups)) == len(set.union(*groups))
        return
    assert [len(one) for one in sets] == [201, 30, 39, 30]
    if split != "random":
        time = np.arange(300) if key is None else key
        for earlier, later in pairwise(sets):
            assert time[earlier].max() < time[later].min()


def test_few_groups_and_small_tables_still_train() -> None:
    training = TrainingConfig(calibration_fraction=0.1, stopping_fraction=0.1)
    by_group = replace(training, split=SplitBy(by="g"))
    for count, empty in ((2, 2), (4, 2), (5, 1), (10, 0)):
        key = np.arange(400) % count
        sets = _sets(divide_rows(by_group, 400, key))
        assert sum(len(one) == 0 for one in sets) == empty
        assert len(sets[0]), "something to learn from"
        assert len(sets[3]), "something to score"
    assert [len(one) for one in _sets(divide_rows(training, 10, None))] == [8, 1, 0, 1]
    halves = TrainingConfig(
        validation_fraction=0.5, calibration_fraction=0.2, stopping_fraction=0.4
    )
    with pytest.raises(InvalidData, match="leaves none of 100 for training"):
        divide_rows(halves, 100, None)


def test_groups_that_leave_fewer_than_19_rows_to_calibrate_on_are_learned_from() -> None:
    """Of 200 rows all but 20, ten groups of two, are one group, which is held out or learned from.

    Whichever it is, what is left for calibration is too few or enough.
    """
    key = np.concatenate([np.zeros(180), np.repeat(np.arange(1, 11), 2)])
    for seed in range(20):
        config = TrainingConfig(split=SplitBy(by="g"), calibration_fraction=0.1, seed=seed)
        sets = _sets(divide_rows(config, 200, key))
        assert len(sets[2]) == 0 or len(sets[2]) >= 19
        assert sorted(np.concatenate(sets).tolist()) == list(range(200))


def test_a_small_table_is_not_calibrated_and_says_so() -> None:
    model = _train(_line(60), pruning=())
    assert "not calibrated: 60 rows, or their groups, leave too few for it" in model.notes
    assert model.variant(0.0).calibration is None
    (interval,) = model.predict(X, PredictOptions()).intervals
    assert interval.kind == "credible"
    assert "uncalibrated" not in model.variant(0.0).metrics


@pytest.mark.parametrize("method", [BBBConfig(), EnsembleConfig(kind="ensemble", members=2)])
def test_a_refit_learns_from_the_stopping_rows_and_no_others(method: object) -> None:
    """Targets of the calibration and the scored rows are replaced: the weights are the same bits.

    Those of the rows that chose the epoch are not: the second fit takes them in.
    """
    columns = _line()
    training = replace(QUICK, refit=True, calibration_fraction=0.1, stopping_fraction=0.1)
    division = divide_rows(training, 200, None)

    def weights(poisoned: np.ndarray, epochs: int = 4) -> list[torch.Tensor]:
        y = columns["y"].copy()
        y[poisoned] += 100.0
        config = replace(training, epochs=epochs)
        model = _train({"x": columns["x"], "y": y}, training=config, method=method)
        return [t for v in model.variants_by_prune.values() for t in v.state.tensors()]

    clean = weights(np.array([], dtype=int))
    hidden = weights(np.concatenate([division.calibration, division.scores]))
    seen = weights(division.stopping)
    assert all(map(torch.equal, clean, hidden))
    assert not all(map(torch.equal, clean, seen))


def test_a_refit_ends_after_the_best_epoch_of_the_first_fit() -> None:
    """The same schedule, cut there: of a rate that falls over 40 epochs and a patience of 2."""
    noise = np.random.default_rng(0).normal(size=200)
    training = replace(QUICK, epochs=40, patience=2, learning_rate=0.2, refit=True)
    columns = {"x": np.random.default_rng(1).normal(size=200), "y": noise}
    profiles = [ColumnProfile(name=n, type="number", min=0, max=1) for n in columns]
    wanted = ModelConfig(
        target="y",
        network=MLPConfig(hidden=(50,)),
        method=EnsembleConfig(kind="ensemble", members=2),
        training=training,
        pruning=(),
    )
    config = resolve(wanted, profiles, 200)
    seen: list[tuple[str, int]] = []
    model = train(
        columns, dict.fromkeys(columns, "number"), config,
        on_progress=lambda p: seen.append((p.stage, p.epoch)),
    )  # fmt: skip
    epochs = {stage: max(e for s, e in seen if s == stage) for stage, _ in seen}
    scores = [epoch["held_out_log_likelihood"] for epoch in model.history]
    best = 1 + int(np.argmax(scores))
    assert best < len(scores) < 40
    assert epochs.get("refit-fit", best) <= best


def test_the_answer_is_the_calibrated_mixture(line: TabularModel) -> None:
    variant = line.variant(0.0)
    plain, doubled = (
        replace(line, variants_by_prune={0.0: replace(variant, calibration=calibration)})
        for calibration in (None, NumberCalibration(4.0, (0.5, 1.0, 1.5), 3))
    )
    options = PredictOptions(samples=64, intervals=(0.5, 0.9), return_draws=True)
    before, after = (model.predict(X, options) for model in (plain, doubled))
    np.testing.assert_allclose(after.mean, before.mean)
    assert before.mc_error is not None
    assert after.mc_error is not None
    np.testing.assert_array_equal(after.mc_error, before.mc_error)
    for kind, values in before.variance.items():
        np.testing.assert_allclose(after.variance[kind], 4 * values)
    sum_ = after.variance["aleatoric"] + after.variance["epistemic"]
    np.testing.assert_allclose(sum_, after.variance["total"])
    np.testing.assert_allclose(after.epistemic_share, before.epistemic_share)
    assert before.draws is not None
    assert after.draws is not None
    np.testing.assert_allclose(after.draws.mean(0), before.draws.mean(0))
    np.testing.assert_allclose(after.draws.std(0), 2 * before.draws.std(0))
    kinds = [(interval.kind, interval.level) for interval in after.intervals]
    assert kinds == [("credible", 0.5), ("credible", 0.9), ("conformal", 0.5), ("conformal", 0.9)]
    half, unbounded = after.intervals[2:]
    np.testing.assert_allclose(half.upper - after.mean, np.sqrt(after.variance["total"]))
    np.testing.assert_allclose(after.mean - half.lower, half.upper - after.mean)
    assert np.isposinf(unbounded.upper).all()
    assert np.isneginf(unbounded.lower).all()
    assert len(before.intervals) == 2


def test_only_the_kinds_that_are_asked_for_come(line: TabularModel) -> None:
    for kinds in (("credible",), ("conformal",), ("conformal", "credible")):
        options = PredictOptions(interval_kinds=kinds)  # type: ignore[arg-type]
        found = [interval.kind for interval in line.predict(X, options).intervals]
        assert found == sorted(kinds, reverse=True)


def test_a_part_of_an_answer_has_the_intervals_that_it_asked_for(line: TabularModel) -> None:
    both = line.predict(X, PredictOptions(intervals=(0.5, 0.9)))
    wanted = PredictOptions(intervals=(0.9,), interval_kinds=("conformal",))

    def only(answer: RowPrediction) -> Interval:
        (interval,) = answer.intervals
        assert (interval.kind, interval.level) == ("conformal", 0.9)
        return interval

    part, alone = only(both.select(1, 3, wanted)), only(line.predict(X, wanted))
    np.testing.assert_array_equal(part.upper, alone.upper[1:3])


def test_held_out_rows_have_their_metrics_before_and_after(line: TabularModel) -> None:
    for prune in (0.0, 0.5):
        variant = line.variant(prune)
        assert isinstance(variant.calibration, NumberCalibration)
        assert variant.describe()["calibration"] == {
            "variance_scale": variant.calibration.variance_scale,
            "rows": 19,
        }
        metrics = variant.metrics
        levels = {"0.5", "0.8", "0.9", "0.95"}
        for name in ("coverage", "interval_width", "conformal_coverage", "conformal_width"):
            assert metrics[name].keys() == levels
        plain = replace(line, variants_by_prune={prune: replace(variant, calibration=None)})
        held_out = divide_rows(line.config.training, 200, None).scores
        columns = {name: values[held_out] for name, values in _line().items()}
        before, after = (model.evaluate(columns, prune=prune) for model in (plain, line))
        told = metrics["uncalibrated"]
        assert told["log_likelihood"] == pytest.approx(before["log_likelihood"])
        assert told["coverage"] == {"0.9": before["coverage"]["0.9"]}
        assert metrics["log_likelihood"] == pytest.approx(after["log_likelihood"])
        assert metrics["rmse"] == pytest.approx(before["rmse"], rel=1e-6)


def test_classes_have_a_temperature() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=300)
    label = np.where(x + random.normal(size=300) > 0, "above", "below").astype(object)
    label[:2] = "rare"  # wherever they land, training and scoring go on
    model = _train({"x": x, "y": label}, pruning=())
    variant = model.variant(0.0)
    assert isinstance(variant.calibration, ClassCalibration)
    described = variant.describe()["calibration"]
    assert described == {
        "temperature": variant.calibration.temperature,
        "rows": 39,
        "sets": {"rows": 39, "penalty": 0.0, "free_classes": 1},
    }
    assert {"ece", "ece_adaptive", "brier"} < variant.metrics.keys()
    for name in ("set_coverage", "set_size", "conformal_set_coverage", "conformal_set_size"):
        levels = {"0.5", "0.8", "0.9", "0.95"}
        assert variant.metrics[name].keys() == levels
        assert variant.metrics["standard_errors"][name].keys() == levels
    uncalibrated = {"log_likelihood", "ece", "ece_expected", "ece_debiased"}
    assert variant.metrics["uncalibrated"].keys() == uncalibrated
    sharp = replace(variant, calibration=ClassCalibration(0.01, 39))
    certain = replace(model, variants_by_prune={0.0: sharp})
    answers = [one.predict(X, PredictOptions(return_draws=True)) for one in (model, certain)]
    assert answers[1].mean.max(1).min() > answers[0].mean.max(1).min()
    for answer in answers:
        np.testing.assert_allclose(answer.mean.sum(1), 1)
        assert answer.draws is not None
        np.testing.assert_allclose(answer.draws.mean(0), answer.mean, atol=0.2)
        assert answer.intervals == ()
    with pytest.raises(InvalidInput, match="no conformal intervals") as caught:
        model.resolve(PredictOptions(interval_kinds=("conformal",)))
    assert caught.value.path == "/interval_kinds"
    only = PredictOptions(interval_kinds=("conformal",), set_level=0.9)
    assert isinstance(model.predict(X, only).answers["sets"], ClassSets)
    with pytest.raises(InvalidInput, match="no conformal sets"):
        certain.resolve(only)


def test_an_artifact_keeps_its_calibration(line: TabularModel, tmp_path: Path) -> None:
    write_model(line, tmp_path)
    read = read_model(tmp_path)
    assert isinstance(read, TabularModel)
    for prune in line.variants:
        assert read.variant(prune).calibration == line.variant(prune).calibration


def test_a_tiny_level_reaches_to_the_smallest_residual() -> None:
    assert NumberCalibration(1.0, (0.5, 1.0, 1.5), 3).half_width(1e-12) == 0.5
