"""Models whose networks read boosted trees: what the race says, and that all paths agree."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from models.artifact.export import build
from models.artifact.files import read_model, write_model
from models.config import InputsConfig, PartConfig, SplitBy, TrainingConfig
from models.config.model import DEFAULT_SHAPE
from models.config.networks import MLPConfig
from models.config.training import Split
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.prediction.options import PredictOptions
from models.tabular import race as tabular_race
from models.tabular.candidates import Budget, Candidate, first_candidate
from models.tabular.fold_problem import FoldProblem
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.tabular.race import Race, joined
from models.tabular.selection import Attempt
from models.training.progress import ProgressReporter
from models.training.stages import Fitting, StageRunner
from models.training.train import ignore
from tests.models.training.fitting import resolved, types_of

NUMBERS, ROWS = 8, 300
QUICK = TrainingConfig(effort="quick", epochs=15, learning_rate=0.03, background=32)


def steps(rows: int, seed: int) -> Columns:
    """Steps of few columns among many, with levels and missing values: trees find them at once."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, NUMBERS))
    level = random.choice(["a", "b", "c"], rows).astype(object)
    y = 2.0 * (x[:, 0] > 0.3) + 2 * ((x[:, 1] > 0) & (x[:, 2] > -0.5)) + (level == "b")
    x[random.random(rows) < 0.1, 3] = np.nan
    y += 2 * np.isnan(x[:, 3]) + 0.3 * random.normal(size=rows)
    return {**{f"x{i}": x[:, i] for i in range(NUMBERS)}, "level": level, "y": y}


def prepared(
    columns: Columns, *, boosted: bool | None = None, split: Split = "random"
) -> tuple[Race, Candidate]:
    """The race of a table, which has tried nothing yet, and a linear candidate."""
    wish = InputsConfig(boosted=boosted)
    training = replace(QUICK, split=split)
    config = resolved(columns, training=training, inputs=wish, pruning=())
    problem = prepare(columns, types_of(columns), config)
    assert isinstance(problem, FoldProblem)
    reporter = ProgressReporter(100, ignore)
    race = Race(problem, StageRunner(reporter, lambda: False, None))
    first = first_candidate(problem.folds.count, DEFAULT_SHAPE, problem.model.target, ROWS)
    return race, first.with_part(inputs="plain", hidden=())


Chosen = tuple[Race, FoldProblem, list[Attempt], str]


def chosen(columns: Columns) -> Chosen:
    """What the race of a table keeps of a linear model, and of the same one with trees."""
    race, linear = prepared(columns)
    attempt = race._try(race.problem, linear)
    assert attempt is not None
    problem, kept, (note,) = race._choose_trees(race.problem, [attempt])
    return race, problem, kept, note


@pytest.fixture(scope="module")
def raced() -> Chosen:
    return chosen(steps(ROWS, 0))


def model_of(raced: Chosen, number: int) -> TabularModel:
    race, problem, *_ = raced
    attempt = race.attempts[number]
    problem = joined(problem, [attempt.candidate])
    return problem.measured(Fitting(problem, race.stages).model_of(attempt.fit))


@pytest.fixture(scope="module")
def model(raced: Chosen) -> TabularModel:
    """A linear model that reads plain inputs and trees."""
    return model_of(raced, -1)


def test_only_random_rows_leave_out_parts_of_folds() -> None:
    """Rows of a group stay together."""
    for split, finer in (("random", True), (SplitBy(by="level"), False)):
        race, _ = prepared(steps(ROWS, 0), split=split)
        assert race.problem.takes_finer_trees == finer


@pytest.mark.parametrize("raced_on", [ROWS, ROWS // 2])
def test_trees_alone_are_a_logistic_regression_of_their_outputs(raced_on: int) -> None:
    """With hardly a prior: each fold is predicted from the others as scikit-learn does.

    A candidate that was raced on some rows is fitted to all of them in the same way.
    """
    columns = steps(ROWS, 0)
    labels = np.where(columns["y"] > 2, "a", "b").astype(object)
    race, linear = prepared({**columns, "y": labels})
    candidate = replace(linear, likelihood=race.problem.model.config.likelihood).of_trees_alone
    problem = joined(race.problem, [candidate]).with_trees(finer=False)
    some = problem.thinned(raced_on)
    fit = race._joined_fit([race._fit(some, candidate, "")], some, problem)
    scores = problem.log_scores(fit.state)
    x = problem.task.expanded.inputs[:, -1:].numpy()
    y, folds = problem.rows.targets.numpy(), problem.folds.of_row.numpy()
    for fold in range(problem.folds.count):
        others, own = folds != fold, folds == fold
        exact = LogisticRegression(C=100).fit(x[others], y[others]).predict_log_proba(x[own])
        expected = exact[np.arange(len(exact)), y[own]]
        np.testing.assert_allclose(scores[own], expected, atol=0.1)
        assert scores[own].mean() == pytest.approx(expected.mean(), abs=0.01)


def test_the_race_takes_trees_where_they_gain_and_says_so(raced: Chosen) -> None:
    race, problem, kept, note = raced
    without, alone, with_trees = race.attempts
    assert problem.has_trees
    assert len(problem.leaves) == 1  # the size that the members' folds chose
    assert alone.ahead_of(without).is_certain
    assert alone.candidate.name.startswith("trees alone, linear")
    assert with_trees.candidate.name.startswith("plain inputs with trees, linear")
    assert with_trees in kept
    assert note.startswith("boosted trees are inputs: with them, what is kept is better than")


def test_the_race_leaves_out_trees_that_gain_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a linear function and noise, trees know less than a linear model: they grow once."""
    grown: list[bool] = []
    with_trees = FoldProblem.with_trees

    def counted(problem: FoldProblem, *, finer: bool = True) -> FoldProblem:
        grown.append(finer)
        return with_trees(problem, finer=finer)

    monkeypatch.setattr(FoldProblem, "with_trees", counted)
    columns = steps(ROWS, 0)
    noise = np.random.default_rng(1).normal(size=ROWS)
    race, problem, kept, note = chosen({**columns, "y": columns["x0"] + columns["x1"] + noise})
    assert note.startswith("boosted trees were tried, and are no inputs: ")
    assert grown == [False]
    assert len(race.attempts) == 2
    assert kept == race.attempts[:1]
    assert not problem.has_trees


def test_trees_of_all_rows_predict_new_rows(model: TabularModel) -> None:
    """A linear model of x without trees leaves a deviation of some 0.7; the noise is 0.3."""
    fresh = steps(2_000, 1)
    assert np.std(fresh["y"] - model.predict(fresh, PredictOptions(samples=16)).mean) < 0.55


def test_of_trees_alone_nothing_else_is_read(raced: Chosen, tmp_path: Path) -> None:
    """Another value of a column changes a mean if and only if it changes what the trees say."""
    write_model(model_of(raced, 1), tmp_path)
    model = read_model(tmp_path)
    assert isinstance(model, TabularModel)
    assert model.encoder.boosted is not None
    rows, asked = steps(500, 4), PredictOptions(sampler="moments")
    pair = rows, {**rows, "x0": rows["x0"] + 0.1}
    before, after = (
        model.encoder.boosted(model.encoder.encode(one)[:, : model.num_explained])[:, 0]
        for one in pair
    )
    same = (before == after).numpy()
    assert 50 < same.sum() < 450
    first, second = (model.predict(one, asked).mean for one in pair)
    np.testing.assert_allclose(first[same], second[same], rtol=1e-6)
    assert (first[~same] != second[~same]).all()


def test_a_stored_model_predicts_the_same(model: TabularModel, tmp_path: Path) -> None:
    write_model(model, tmp_path)
    again = read_model(tmp_path)
    assert isinstance(again, TabularModel)
    rows, asked = steps(20, 2), PredictOptions(samples=20)
    pair = [one.predict(rows, asked).mean for one in (again, model)]
    np.testing.assert_allclose(*pair, rtol=1e-5)  # compiled loops round otherwise than torch


def test_an_exported_graph_has_the_trees(model: TabularModel) -> None:
    export = build(model, posterior="full", samples=64)
    rows = steps(20, 2)
    level = np.array([["a", "b", "c"].index(value) for value in rows["level"]], float)
    numbers = [rows[f"x{i}"] for i in range(NUMBERS)]
    table = torch.from_numpy(np.column_stack([*numbers, level]))
    dynamic = ({0: torch.export.Dim.AUTO},)
    exported = torch.export.export(export.module, export.example, dynamic_shapes=(dynamic,))
    many = table.repeat(60, 1)  # more than are encoded at once
    torch.testing.assert_close(exported.module()(many), export.module(many))
    mean = export.module(table)[0].numpy()
    asked = PredictOptions(samples=64, sampler="monte_carlo")
    deviation = np.sqrt(model.predict(rows, asked).variance["epistemic"])
    # two times 64 samples of the same posterior
    assert (np.abs(mean - model.predict(rows, asked).mean) < 5 * deviation * (2 / 64) ** 0.5).all()


def test_contributions_are_of_columns_and_add_up(model: TabularModel) -> None:
    rows, asked = steps(3, 3), PredictOptions(explain=True, samples=16, sampler="moments")
    answer = model.predict(rows, asked)
    assert answer.constants["features"] == tuple(name for name in rows if name != "y")
    total = answer.constants["base"]["mean"] + answer["mean_contribution"].sum(1)
    np.testing.assert_allclose(total, answer.mean, rtol=1e-4, atol=1e-4)
    size = np.abs(answer["mean_contribution"]).mean(0)
    assert size[0] > 5 * size[4:NUMBERS].max()  # nothing is of `x4` and the following


def test_unlike_rows_are_told_by_their_columns(model: TabularModel) -> None:
    rows = {f"x{i}": np.array([0.1, 50.0 if i == 0 else 0.1]) for i in range(NUMBERS)}
    answer = model.predict(rows | {"level": np.array(["b", "?"], object)}, PredictOptions())
    assert answer.is_finite
    assert answer.out_of_distribution.tolist() == [False, True]
    assert {reason.column for reason in answer["reasons"][1]} == {"x0", "level"}


def test_trees_read_what_stands_for_a_new_level(model: TabularModel) -> None:
    rows = {name: values[:3] for name, values in steps(3, 4).items()}
    x = model.encode(rows | {"level": np.full(3, "?", object)})
    encoder, imputation = model.encoder, model.encoder.imputation
    assert imputation is not None
    ((_, copies),) = imputation.runs(x)
    assert copies is not None
    filled = copies.fill(x)
    assert len(filled) == 3 * 3
    assert torch.equal(encoder.with_trees(encoder.without_trees(filled)), filled)


@pytest.mark.parametrize("wish", [True, False])
def test_a_wish_is_no_choice(wish: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All candidates read trees, or none, whatever they gain; so does the model of all rows."""
    monkeypatch.setattr(tabular_race, "plan_budget", lambda *_: Budget(1, 1, 250, 1))
    columns = steps(ROWS, 0)
    race, _ = prepared({**columns, "y": columns["x0"]}, boosted=wish)
    model, problem = race.run()
    assert len(problem.rows) > 250
    assert problem.has_trees == wish
    assert {attempt.candidate.part.boosted for attempt in race.attempts} == {wish}
    assert ("boosted trees are inputs, as wished" in model.selection["note"]) == wish


def test_few_rows_have_no_trees() -> None:
    *_, note = chosen(steps(150, 0))
    assert note.startswith("boosted trees are no inputs: only 200 learning rows or more")


def test_trees_are_refused_where_nothing_is_chosen() -> None:
    columns = steps(60, 0)
    with pytest.raises(InvalidData, match="boosted trees grow only") as error:
        resolved(columns, inputs=InputsConfig(boosted=True), network=MLPConfig(hidden=(8,)))
    assert error.value.path == "/inputs/boosted"
    for part, message in (
        (PartConfig(boosted=True), "boosted trees grow only"),
        (PartConfig(inputs="none"), "reads nothing: plain or piecewise"),
    ):
        with pytest.raises(InvalidData, match=message):
            resolved(columns, network=MLPConfig(parts=(PartConfig(), part)))
