"""Several targets: their dependence, and models of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from models.artifact.files import examine_artifact, read_model, write_model
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.exceptions import CorruptArtifact, Stopped
from models.features.columns import Columns
from models.joint.answer import JointPrediction, joint_name
from models.joint.dependence import Dependence, Transforms, draw_levels, draw_ranks, fit_correlation
from models.joint.fitting import train_joint
from models.joint.model import JointModel
from models.prediction.declared_outputs import LEVEL
from models.prediction.options import PredictOptions
from models.training.progress import Progress
from models.training.train import TrainingRun, train
from tests.models.training.fitting import resolved

CORRELATION, SIGMAS = 0.8, (0.5, 1.0)
TYPES = {"x": "number", "flour": "number", "butter": "number"}
QUICK = TrainingConfig(
    epochs=30, batch_size=64, learning_rate=0.02, fine_tune_epochs=1, background=0
)


def bakery(rows: int, seed: int) -> Columns:
    """flour = x + 0.5 ε₁ and butter = 10 − 2x + ε₂, where ε₁ and ε₂ have the correlation 0.8."""
    random = np.random.default_rng(seed)
    x = random.uniform(-2, 2, rows)
    noise = random.multivariate_normal([0, 0], [[1, CORRELATION], [CORRELATION, 1]], rows)
    return {
        "x": x,
        "flour": x + SIGMAS[0] * noise[:, 0],
        "butter": 10 - 2 * x + SIGMAS[1] * noise[:, 1],
    }


def configs(
    columns: Columns, training: TrainingConfig = QUICK, hidden: tuple[int, ...] | None = (8,)
) -> list[ModelConfig]:
    """The resolved configurations of both targets."""
    options = {"network": MLPConfig(hidden=hidden), "training": training, "pruning": (0.5,)}
    each = [{name: columns[name] for name in ("x", target)} for target in TYPES if target != "x"]
    return [resolved(own, target=list(own)[1], reads=True, **options) for own in each]


@pytest.fixture(scope="session")
def trained_on() -> Columns:
    return bakery(800, seed=0)


@pytest.fixture(scope="session")
def joint(trained_on: Columns) -> JointModel:
    return train_joint(trained_on, TYPES, configs(trained_on), TrainingRun())


DRAWN = PredictOptions(return_draws=True, samples=100, intervals=(0.5, 0.9))


@pytest.fixture(scope="module")
def fresh() -> Columns:
    return bakery(600, seed=1)


@pytest.fixture(scope="module")
def predicted(joint: JointModel, fresh: Columns) -> JointPrediction:
    return joint.predict({"x": fresh["x"]}, DRAWN)


def bounds(predicted: JointPrediction, end: str) -> np.ndarray:
    """Rows × levels × targets."""
    return np.stack([predicted[joint_name(name, end)] for name in predicted.targets], axis=-1)


def drawn(predicted: JointPrediction) -> np.ndarray:
    """Rows × targets × samples."""
    return np.stack([predicted[joint_name(name, "draws")] for name in predicted.targets], axis=1)


def test_correlation_is_the_conditional_one(joint: JointModel, trained_on: Columns) -> None:
    found = joint.dependence[0.0].correlation[0][1]
    assert found == pytest.approx(CORRELATION, abs=0.12)  # 3 standard errors of 79 rows
    assert np.corrcoef(trained_on["flour"], trained_on["butter"])[0, 1] < 0  # not the marginal one


def test_joint_draws_have_the_variance_of_their_sum(
    predicted: JointPrediction,
) -> None:
    values = drawn(predicted)
    centred = values - values.mean(-1, keepdims=True)
    scaled = centred / values.std(-1, keepdims=True)
    assert (scaled[:, 0] * scaled[:, 1]).mean() == pytest.approx(CORRELATION, abs=0.12)
    truth = SIGMAS[0] ** 2 + SIGMAS[1] ** 2 + 2 * CORRELATION * SIGMAS[0] * SIGMAS[1]
    independent = values[:, 0] + np.random.default_rng(0).permuted(values[:, 1], axis=-1)
    together = values.sum(1).var(-1).mean()
    assert together == pytest.approx(truth, rel=0.15)
    assert independent.var(-1).mean() < 0.75 * truth


def test_joint_intervals_cover_both_targets(predicted: JointPrediction, fresh: Columns) -> None:
    truth = np.stack([fresh["flour"], fresh["butter"]], axis=1)[:, None]
    inside = (bounds(predicted, "lower") <= truth) & (truth <= bounds(predicted, "upper"))
    # Of 79 calibration rows the coverage is Beta(72, 8): standard deviation 0.03; binomial 0.013.
    assert inside.all(2).mean(0)[1] == pytest.approx(0.9, abs=0.09)
    assert inside.all(2).mean(0)[0] == pytest.approx(0.5, abs=0.15)
    assert (inside.mean(0) > inside.all(2).mean(0)[:, None]).all()


def test_marginals_are_those_of_models_trained_alone(
    joint: JointModel, predicted: JointPrediction, trained_on: Columns, fresh: Columns
) -> None:
    alone = train(trained_on, TYPES, configs(trained_on)[1])
    answer = alone.predict_rows(alone.encode({"x": fresh["x"]}), DRAWN)
    both = predicted.targets["butter"]
    np.testing.assert_array_equal(both.mean, answer.mean)
    np.testing.assert_array_equal(both.variance["total"], answer.variance["total"])
    np.testing.assert_array_equal(both.draws, answer.draws)
    for one, other in zip(both.intervals, answer.intervals, strict=True):
        np.testing.assert_array_equal(one.lower, other.lower)
    assert alone.variant(0.5).metrics == joint.members[1].variant(0.5).metrics


def test_requests_may_be_joined_and_cut(joint: JointModel, fresh: Columns) -> None:
    options = joint.resolve(PredictOptions(intervals=(0.5, 0.9)))
    x = joint.encode({"x": fresh["x"][:30]})
    whole = joint.predict_rows(x, options)
    parts = [joint.predict_rows(x[:13], options), joint.predict_rows(x[13:], options)]
    again = JointPrediction.joined(parts)
    some = whole.select(13, 30, replace(options, intervals=(0.9,)))
    np.testing.assert_allclose(again.targets["butter"].mean, whole.targets["butter"].mean)
    np.testing.assert_allclose(bounds(again, "lower"), bounds(whole, "lower"))
    assert some.coordinates[LEVEL] == (0.9,)
    lower, of_whole = bounds(some, "lower"), bounds(whole, "lower")
    np.testing.assert_array_equal(lower[:, 0], of_whole[13:, 1])
    assert [one.level for one in some.targets["butter"].intervals] == [0.9, 0.9]
    assert some.targets["butter"].num_rows == 17


def test_artifact_keeps_everything(joint: JointModel, fresh: Columns, tmp_path: Path) -> None:
    written = write_model(joint, tmp_path)
    read = examine_artifact(tmp_path)
    assert isinstance(read, JointModel)
    assert read.description == written.description
    rows = {"x": fresh["x"][:20]}
    for prune in (0.0, 0.5):
        options = replace(DRAWN, prune=prune)
        before, after = (model.predict(rows, options) for model in (joint, read))
        # A model that was read is answered by compiled loops, which round otherwise.
        np.testing.assert_allclose(drawn(before), drawn(after), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(bounds(before, "upper"), bounds(after, "upper"), rtol=1e-5)
    model = tmp_path / "target-1-prune-0.safetensors"
    model.write_bytes(model.read_bytes()[:-1])
    with pytest.raises(CorruptArtifact, match="target-1-prune-0"):
        read_model(tmp_path)


def test_finished_targets_are_not_trained_again(trained_on: Columns, tmp_path: Path) -> None:
    short = replace(QUICK, epochs=3)
    each = [replace(one, pruning=()) for one in configs(trained_on, short)]
    whole = train_joint(trained_on, TYPES, each, TrainingRun())
    # The first epoch of a stage is always reported, however quick it was.
    seen: list[Progress] = []
    run = TrainingRun(
        on_progress=seen.append,
        should_stop=lambda: bool(seen) and seen[-1].stage.startswith("butter"),
        checkpoint_dir=tmp_path,
    )
    with pytest.raises(Stopped):
        train_joint(trained_on, TYPES, each, run)
    assert seen[-1].fraction > 0.5
    again: list[Progress] = []
    resumed = train_joint(
        trained_on, TYPES, each, replace(run, on_progress=again.append, should_stop=lambda: False)
    )
    assert {one.stage.partition(":")[0] for one in again} == {"butter"}
    assert again[-1].fraction == 1.0
    assert resumed.description == whole.description


def test_metrics_of_all_targets_on_labelled_rows(joint: JointModel, fresh: Columns) -> None:
    metrics = joint.evaluate(fresh)
    assert metrics["joint_coverage"]["0.9"] == pytest.approx(0.9, abs=0.09)
    assert metrics["targets"]["butter"]["rmse"] == pytest.approx(SIGMAS[1], rel=0.1)
    assert metrics["rmse"] == metrics["targets"]["flour"]["rmse"]


def test_folds_calibrate_out_of_fold(trained_on: Columns) -> None:
    few = {name: values[:60] for name, values in trained_on.items()}
    training = TrainingConfig(epochs=1, folds=2, effort="quick", background=0)
    each = [replace(one, pruning=()) for one in configs(few, training, hidden=None)]
    model = train_joint(few, TYPES, each, TrainingRun())
    assert model.dependence[0.0].rows == 54  # all but the held-out rows


def of_rows(rows: int, correlation: float, seed: int, power: float = 1.0) -> list[Transforms]:
    """Transforms of three equally correlated targets; of powers other than 1 miscalibrated ones."""
    random = np.random.default_rng(seed)
    matrix = np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)
    values = norm.cdf(random.multivariate_normal(np.zeros(3), matrix, rows)) ** power
    return [Transforms(column, column, np.ones(rows)) for column in values.T]


@pytest.mark.parametrize(("correlation", "power"), [(0.0, 1.0), (0.8, 1.7)])
def test_coverage_of_fresh_rows(correlation: float, power: float) -> None:
    shares = []
    for seed in range(40):
        dependence = Dependence.fit(of_rows(99, correlation, seed, power))
        shares.append(dependence.coverage(of_rows(2_000, correlation, 1_000 + seed, power), 0.9))
    # Of 99 calibration rows the coverage is Beta(90, 10), whose standard deviation is 0.03.
    assert np.mean(shares) == pytest.approx(0.9, abs=3 * 0.03 / np.sqrt(40))


def test_probability_of_independent_and_of_equal_targets() -> None:
    independent = Dependence.fit(of_rows(9_999, 0.0, 0))
    equal = Dependence.fit(of_rows(9_999, 1.0, 0))
    assert independent.score(0.9) == pytest.approx(0.9 ** (1 / 3), abs=0.01)
    assert equal.score(0.9) == pytest.approx(0.9, abs=0.01)


def test_too_few_rows_give_unbounded_intervals() -> None:
    assert Dependence.fit(of_rows(8, 0.5, 0)).score(0.9) == 1.0
    unknown = Dependence.unknown(3)
    assert unknown.score(0.5) == 1.0
    np.testing.assert_array_equal(unknown.correlation, np.eye(3))


R = np.array([[1.0, 0.8], [0.8, 1.0]])


def transforms(rows: int, correlation: np.ndarray, seed: int = 0) -> np.ndarray:
    """Uniform numbers whose normal scores have a correlation."""
    random = np.random.default_rng(seed)
    return norm.cdf(random.multivariate_normal(np.zeros(len(correlation)), correlation, rows))


def test_correlation_is_that_of_the_normal_scores_whatever_the_marginals() -> None:
    found = transforms(4_000, R)
    ones = np.ones(4_000)

    fitted = fit_correlation(found, ones)
    skewed = fit_correlation(found**3, ones)  # miscalibrated marginals keep the ranks

    assert fitted[0, 1] == pytest.approx(0.8, abs=0.02)  # 3 standard errors (1 − ρ²)/√n
    np.testing.assert_array_equal(fitted, skewed)


def test_correlation_of_independent_targets_shrinks_towards_none() -> None:
    sizes = []
    for seed in range(40):
        found = transforms(25, np.eye(3), seed)
        plain = np.corrcoef(norm.ppf(found).T)
        fitted = fit_correlation(found, np.ones(25))
        sizes.append((np.sum((plain - np.eye(3)) ** 2), np.sum((fitted - np.eye(3)) ** 2)))
        assert np.linalg.eigvalsh(fitted).min() > 0
    plain, fitted = np.mean(sizes, axis=0)
    assert fitted < 0.5 * plain


def test_draws_have_the_correlation_and_the_marginals() -> None:
    levels = draw_levels(2, 200, seed=1)
    ranks = draw_ranks(R, 300, 200, seed=1).numpy()

    values = np.stack([norm.ppf(levels[k])[ranks[k]] for k in (0, 1)])

    assert np.corrcoef(values.reshape(2, -1))[0, 1] == pytest.approx(0.8, abs=0.02)
    assert values.var() == pytest.approx(1.0, abs=0.03)
    for k in (0, 1):  # every row has all quantiles once, in an order of its own
        np.testing.assert_array_equal(
            np.sort(ranks[k], axis=0), np.arange(200)[:, None] + 0 * ranks[k]
        )
    assert (ranks[0, :, 0] != ranks[0, :, 1]).any()
