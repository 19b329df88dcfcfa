"""Trainings whose recipe is chosen on the rows: what is chosen, and what its figures are worth."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models.config import BBBConfig, KLConfig, MLPConfig, ModelConfig, TrainingConfig
from models.exceptions import Diverged, InvalidData, Stopped
from models.features.columns import ColumnProfile
from models.prediction.options import PredictOptions
from models.tabular.candidates import first_candidate
from models.tabular.fold_problem import FoldProblem
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.tabular.race import Race, joined
from models.training.progress import ProgressReporter
from models.training.recipe import resolve
from models.training.stages import Fitting, StageRunner
from models.training.train import ignore, train

Columns = dict[str, np.ndarray]
QUICK = TrainingConfig(effort="quick", fine_tune_epochs=1)


def _profile(name: str, values: np.ndarray) -> ColumnProfile:
    if values.dtype == object:
        return ColumnProfile(name=name, type="category", levels=tuple(sorted(set(values.tolist()))))
    return ColumnProfile(name=name, type="number", min=float(values.min()), max=float(values.max()))


def _profiles(columns: Columns) -> list[ColumnProfile]:
    return [_profile(name, values) for name, values in columns.items()]


def _resolve(columns: Columns, **config: Any) -> ModelConfig:
    options = {"target": "y", "training": QUICK, "pruning": (0.5,), **config}
    return resolve(ModelConfig(**options), _profiles(columns), len(columns["y"]))


def _types(columns: Columns) -> dict[str, str]:
    return {p.name: p.type for p in _profiles(columns)}


def _train(columns: Columns, **config: Any) -> TabularModel:
    model = train(columns, _types(columns), _resolve(columns, **config))
    assert isinstance(model, TabularModel)
    return model


def _skewed(rows: int, seed: int) -> Columns:
    """y = exp(1 + x + ½ε): positive and skewed; log y is a Gaussian with mean 1 + x, variance ¼."""
    random = np.random.default_rng(seed)
    x = random.normal(size=rows)
    return {"x": x, "y": np.exp(1 + x + 0.5 * random.normal(size=rows))}


def _two_classes(rows: int, seed: int) -> Columns:
    """P(yes) = 1/(1 + exp(−x₀)): noisy, and four of five features say nothing."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 5))
    yes = random.random(rows) < 1 / (1 + np.exp(-x[:, 0]))
    labels = np.where(yes, "yes", "no").astype(object)
    return {**{f"x{i}": x[:, i] for i in range(5)}, "y": labels}


@pytest.fixture(scope="module")
def skewed() -> TabularModel:
    return _train(_skewed(600, 0))


def test_a_skewed_target_is_predicted_on_the_scale_where_it_is_a_gaussian(
    skewed: TabularModel,
) -> None:
    fresh = _skewed(2_000, 1)
    metrics = skewed.evaluate(fresh)
    # the log likelihood of the true distribution: E[log N(log y; 1 + x, ¼) − log y]
    truth = -0.5 * np.log(2 * np.pi * 0.25) - 0.5 - np.log(fresh["y"]).mean()
    assert metrics["log_likelihood"] > truth - 0.05  # 600 rows: each parameter costs 1/1200 nats
    assert abs(metrics["coverage"]["0.9"] - 0.9) < 0.04  # 2,000 rows: a standard error of 0.007
    assert abs(metrics["conformal_coverage"]["0.9"] - 0.9) < 0.04  # and 600 calibration rows: 0.012


def test_no_interval_leaves_the_support(skewed: TabularModel) -> None:
    far = {"x": np.linspace(-50, 50, 101)}
    answer = skewed.predict(far, PredictOptions(intervals=(0.5, 0.99)))
    assert all((interval.lower >= 0).all() for interval in answer.intervals)
    assert answer.is_finite


def test_a_version_tells_what_was_tried(skewed: TabularModel) -> None:
    selection = skewed.selection
    assert selection["rows"] == 540  # a tenth is held out for the reported scores
    assert selection["candidates"][0]["kept"]
    assert selection["candidates"][0]["difference"] == 0
    assert any("chosen among" in note for note in skewed.notes)
    assert any("the target is a" in note for note in skewed.notes)
    scale = skewed.config.likelihood.scale  # type: ignore[union-attr]
    stated = [note for note in skewed.notes if "on the scale" in note]
    assert stated
    assert all(f"on the scale {scale}" in note for note in stated), "notes name the chosen scale"


def test_prices_with_slips_of_one_digit_are_learned() -> None:
    """Whole numbers whose interval is narrower than float32: the gradient was NaN."""
    columns = _skewed(200, 3)
    prices = np.round(100_000 * columns["y"], -4)
    columns["y"] = prices * np.where(np.arange(200) < 3, 10.0, 1.0)
    model = _train(columns)
    answer = model.predict({"x": columns["x"]}, PredictOptions())
    assert answer.is_finite
    assert not any("dropped" in note for note in model.notes)


@pytest.mark.training
def test_a_candidate_that_diverges_is_dropped_and_said() -> None:
    problem, said = _problem(_skewed(60, 2)), []
    stages = replace(_stages(), reporter=ProgressReporter(100, said.append))
    race = Race(problem, stages)
    endless = _candidate(problem).with_part(kl_weight=1e40)  # beyond float32: the loss is infinite
    assert race._try(problem, endless) is None
    model, _ = race.run()
    (note,) = [note for note in model.notes if "was dropped" in note]
    assert note.startswith(f"{endless.name} was dropped: training diverged at step 0: the ")
    assert model.selection["note"].endswith(note)
    assert endless.name not in [one["name"] for one in model.selection["candidates"]]
    assert [one.stage for one in said if not one.metrics] == ["candidate-0-diverged"]


def test_a_race_of_which_all_candidates_diverge_fails_with_advice() -> None:
    wild = replace(QUICK, optimizer="sgd", learning_rate=1e30, gradient_clip=1e30)
    with pytest.raises(Diverged, match=r"or lower training\.learning_rate, which was 1e\+30"):
        _train(_skewed(60, 2), training=wild)


def test_a_learning_rate_is_that_of_each_candidate() -> None:
    own = TrainingConfig(learning_rate=0.001, optimizer="sgd", schedule="cosine")
    training = _resolve(_skewed(60, 2), training=own).training
    assert training.folds is not None
    assert (training.learning_rate, training.schedule) == (0.001, "cosine")
    assert _resolve(_skewed(60, 2), training=TrainingConfig(epochs=5)).training.folds is None


def test_useless_features_and_noise_cost_little() -> None:
    model = _train(_two_classes(800, 0))
    fresh = _two_classes(4_000, 1)
    logits = fresh["x0"] * np.where(fresh["y"] == "yes", 1.0, -1.0)
    truth = -np.log1p(np.exp(-logits)).mean()
    loss = model.evaluate(fresh)["log_likelihood"] - truth
    # a logistic regression with six parameters loses about 6/(2·800) = 0.004 nats
    assert loss > -0.02


def test_out_of_fold_scores_are_of_members_that_did_not_learn_the_row() -> None:
    columns = _skewed(60, 2)
    problem = _problem(columns)
    candidate = _candidate(problem)
    problem = joined(problem, [candidate])
    fit = Fitting(problem, _stages(), "one-").fit()
    scores = problem.log_scores(fit.state)
    engine, ready = problem._left_out(fit.state, 1)
    index = problem.folds.rows(1)
    rows = problem.rows[index]
    alone = [
        one.mixture.log_prob(one.targets)
        for one in engine.labelled(ready, rows, engine.samplers[0], problem.model.default_seed, 100)
    ]
    torch.testing.assert_close(scores[index], torch.cat(alone).double())
    assert engine.network.layout.members == 1


def test_a_member_does_not_learn_from_its_own_fold() -> None:
    """Other targets in fold 0 change every member but the one that leaves it out."""
    columns = _skewed(60, 2)
    problem = joined(_problem(columns), [_candidate(_problem(columns))])
    targets = problem.rows.targets.clone()
    targets[problem.folds.rows(0)] *= 3
    other = replace(problem, rows=replace(problem.rows, targets=targets))
    states = [Fitting(one, _stages(), "one-").fit(last_epoch=2).state for one in (problem, other)]
    layout = problem.model.network.layout
    first, second = (layout.blocks(state.posterior.loc)[0] for state in states)
    same = [bool(torch.equal(a, b)) for a, b in zip(first, second, strict=True)]
    assert same[0]
    assert not any(same[1:])


@pytest.mark.training
def test_candidates_that_give_the_same_network_are_fitted_once() -> None:
    """Categories have no pieces: "piecewise" and "plain" are the same network then."""
    labels = np.array(["a", "b", "c"], dtype=object)
    random = np.random.default_rng(0)
    columns = {"x": labels[random.integers(0, 3, 60)], "y": random.normal(size=60)}
    problem = _problem(columns)
    race = Race(problem, _stages())
    piecewise = _candidate(problem)
    plain, wider = piecewise.with_part(inputs="plain"), piecewise.with_part(hidden=(9,))
    for candidate in (piecewise, plain, wider):
        race.attempts.append(race._fit(problem, candidate, "one-"))
    first, second, third = race.attempts
    assert second.candidate == plain
    assert second.fit is first.fit
    assert third.fit is not first.fit
    again = Fitting(joined(problem, [plain]), _stages(), "two-").fit()
    for a, b in zip(second.fit.state.tensors(), again.state.tensors(), strict=True):
        assert torch.equal(a, b), "the weights that a fit of its own would have given"


@pytest.mark.training
def test_numbers_have_pieces_so_that_both_encodings_are_fitted() -> None:
    problem = _problem(_skewed(60, 2))
    race = Race(problem, _stages())
    piecewise = _candidate(problem)
    for candidate in (piecewise, piecewise.with_part(inputs="plain")):
        race.attempts.append(race._fit(problem, candidate, "one-"))
    assert race.attempts[0].fit is not race.attempts[1].fit


def test_the_progress_of_a_race_ends_at_the_whole() -> None:
    columns = _two_classes(60, 3)
    fractions: list[float] = []
    train(
        columns,
        _types(columns),
        _resolve(columns),
        on_progress=lambda progress: fractions.append(progress.fraction),
    )
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1


def test_equal_seeds_give_equal_models_also_after_a_stop(tmp_path: Path) -> None:
    columns = _two_classes(120, 3)
    config = _resolve(columns)
    whole = train(columns, _types(columns), config)
    steps = 0

    def stop_once() -> bool:
        nonlocal steps
        steps += 1
        return steps == 60

    with pytest.raises(Stopped):
        train(columns, _types(columns), config, checkpoint_dir=tmp_path, should_stop=stop_once)
    resumed = train(columns, _types(columns), config, checkpoint_dir=tmp_path)
    assert resumed.selection == whole.selection
    for prune, variant in whole.variants_by_prune.items():
        for a, b in zip(
            variant.state.tensors(), resumed.variant(prune).state.tensors(), strict=True
        ):
            assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"network": MLPConfig(hidden=(20,))}, "network.hidden"),
        ({"method": BBBConfig(kl=KLConfig(weight=0.5))}, "method.kl.weight"),
        ({"members": 4}, "members"),
    ],
)
def test_an_effort_beside_a_fixed_recipe_is_refused(config: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidData, match=named):
        _resolve(_skewed(100, 0), **{"training": QUICK, **config})


def test_a_request_that_says_how_to_fit_is_fitted_once() -> None:
    config = _resolve(_skewed(100, 0), training=TrainingConfig(epochs=10))
    assert config.training.folds is None
    assert config.likelihood == "heteroscedastic"


def _problem(columns: Columns) -> FoldProblem:
    config = _resolve(columns)
    config = replace(config, training=replace(config.training, epochs=4))
    problem = prepare(columns, _types(columns), config)
    assert isinstance(problem, FoldProblem)
    return problem


def _candidate(problem: FoldProblem) -> Any:
    model = problem.model
    first = first_candidate(problem.folds.count, model.config.likelihood, model.target, 60)
    return first.with_part(hidden=(8,))


def _stages() -> StageRunner:
    return StageRunner(ProgressReporter(100, ignore), lambda: False, None)
