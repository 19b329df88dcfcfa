"""Trainings whose recipe is chosen on the rows: what is chosen, and what its figures are worth."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from models.config import ModelConfig, PartConfig, TrainingConfig
from models.evaluation.weighting import paired
from models.features.targets import NumberTarget
from models.inference.method import Fit
from models.likelihoods.number_mixture import NumberMixture
from models.prediction.options import PredictOptions, Sampling
from models.tabular import fold_problem, race
from models.tabular.candidates import Budget, Candidate, first_candidate
from models.tabular.fold_problem import FoldProblem
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.tabular.race import Race, joined
from models.tabular.selection import Attempt, describe, keep, note_on_process, notes_on
from models.training.progress import ProgressReporter
from models.training.stages import Fitting, StageRunner
from models.training.train import ignore
from tests.models.training.fitting import resolved, trained, types_of

Columns = dict[str, np.ndarray]
QUICK = TrainingConfig(effort="quick", epochs=10, background=0)


def _resolve(columns: Columns, **config: Any) -> ModelConfig:
    return resolved(columns, **{"training": QUICK, "pruning": (), **config})


def _train(columns: Columns, **config: Any) -> TabularModel:
    return trained(columns, **{"training": QUICK, "pruning": (), **config})


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


def test_a_skewed_target_is_predicted_on_the_scale_where_it_is_a_gaussian() -> None:
    skewed = _train(_skewed(400, 0))
    fresh = _skewed(2_000, 1)
    metrics = skewed.evaluate(fresh)
    # the log likelihood of the true distribution: E[log N(log y; 1 + x, ¼) − log y]
    truth = -0.5 * np.log(2 * np.pi * 0.25) - 0.5 - np.log(fresh["y"]).mean()
    assert metrics["log_likelihood"] > truth - 0.05  # 400 rows: each parameter costs 1/800 nats
    # three standard errors: 0.007 of 2,000 rows, and 0.016 of 360 rows that calibrate
    assert abs(metrics["coverage"]["0.9"] - 0.9) < 0.05
    assert abs(metrics["conformal_coverage"]["0.9"] - 0.9) < 0.05


def test_prices_with_slips_of_one_digit_are_learned() -> None:
    """Whole numbers whose interval is narrower than float32: the gradient was NaN."""
    columns = _skewed(200, 3)
    prices = np.round(100_000 * columns["y"], -4)
    columns["y"] = prices * np.where(np.arange(200) < 3, 10.0, 1.0)
    model, _ = Race(_problem(columns), _stages()).run()
    assert isinstance(model, TabularModel)
    answer = model.predict({"x": columns["x"]}, PredictOptions())
    assert answer.is_finite
    assert not any("dropped" in note for note in model.notes)


def test_a_candidate_that_diverges_is_dropped_and_said() -> None:
    problem, said = _problem(_skewed(60, 2)), []
    stages = replace(_stages(), reporter=ProgressReporter(100, said.append))
    race = Race(problem, stages)
    endless = _candidate(problem).with_part(kl_weight=1e40)  # beyond float32: the loss is infinite
    assert race._try(problem, endless) is None
    model, _ = race.run()
    assert any(f"{endless.name} was dropped" in note for note in model.notes)
    assert endless.name not in [one["name"] for one in model.selection["candidates"]]
    assert [one.stage for one in said if not one.metrics] == ["candidate-0-diverged"]


def test_nothing_is_said_of_a_process_if_both_fits_diverged() -> None:
    problem = _problem(_skewed(60, 2))
    race = Race(problem, _stages())
    endless = _candidate(problem).with_part(kl_weight=1e40)
    assert race._begin(problem, endless) == (problem, ())
    assert [one.name for one in race.dropped] == [
        endless.name,
        f"{endless.name}, above a Gaussian process,",
    ]


@pytest.mark.parametrize("most", [150, 200])
def test_a_process_is_tried_only_where_the_model_of_all_rows_has_it(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 200 rows 100 are raced on; a straight line is what a process can say."""
    monkeypatch.setattr(fold_problem, "PROCESS_ROWS", most)
    monkeypatch.setattr(race, "plan_budget", lambda *_: Budget(1, 1, 100, 1))
    random = np.random.default_rng(0)
    x = random.normal(size=200)
    model, problem = Race(
        _problem({"x": x, "y": x + 0.1 * random.normal(size=200)}), _stages()
    ).run()
    assert isinstance(model, TabularModel)
    assert (model.process is not None) == (problem.rows.offsets is not None) == (most == 200)
    assert any("Gaussian process is below" in note for note in model.notes) == (most == 200)


def test_a_process_that_only_widens_costs_little_and_doubts_a_hole() -> None:
    """Steps with a hole. Of 200 rows 100 are raced on."""
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, 400)
    x = x[np.abs(x) > 0.7][:200]
    y = 2.0 * (x > -1.2) + 2.0 * (x > 1.2) + 0.1 * random.normal(size=200)
    problem = _problem({"x": x, "y": y})
    raced, first, one = problem.thinned(100), _candidate(problem), Race(problem, _stages())
    plain = one._fit(raced, first, "candidate-0-")
    above, found = race._widened(joined(raced, [first]).above_process(), plain)
    assert found is not None
    assert found.ahead_of(plain).difference >= -0.01
    whole = one._whole(above, [first])
    process, offsets = whole.model.process, whole.rows.offsets
    assert process is not None
    assert offsets is not None
    assert process.only_widens
    assert len(offsets) == len(whole.rows) > len(raced.rows)
    assert float((offsets[:, 1] > 0.01 * process.size).double().mean()) < 0.15
    encoder = whole.model.encoder
    at = encoder.plain(encoder.encode({"x": np.array([0.0, 9.0, -1.5, 1.5])}))
    deviation = process(at)[:, 1] / float(process.size)
    assert deviation[:2].min() > 0.8
    assert deviation[2:].max() < 0.1
    assert "widens" in note_on_process(found.ahead_of(plain), process)


def test_what_a_process_and_the_networks_above_it_both_state_is_counted_once() -> None:
    """Of a straight line: both variances together are the larger one, not their sum."""
    random = np.random.default_rng(0)
    line = random.normal(size=200)
    problem = _problem({"x": line, "y": line + random.normal(size=200)})
    problem = joined(problem, [_candidate(problem)]).above_process()
    fitting = Fitting(problem, _stages())
    twice = fitting.model_of(fitting.fit())
    assert isinstance(twice, TabularModel)
    once, counted = problem.counted_once(twice)
    assert once.process is counted.model.process
    networks, x = replace(twice, process=None), problem.rows.inputs

    def epistemic(model: TabularModel) -> float:
        sampling = Sampling("sobol", 0, 256)
        (_, mixture), *_ = model.engine.mixtures(model.fitted(0.0), x, sampling)
        assert isinstance(mixture, NumberMixture)
        return float(mixture.location_variances().mean())

    assert twice.process is not None
    below = float(twice.process(twice.encoder.plain(x))[:, 1].square().mean())
    alone = epistemic(networks)
    larger, both = max(alone, below), alone + below
    assert epistemic(twice) == pytest.approx(both, rel=0.05)
    assert larger * 0.95 < epistemic(once) < 0.5 * (larger + both)
    assert problem.counted_once(networks) == (networks, problem)


def test_useless_features_and_noise_cost_little() -> None:
    model = _train(_two_classes(500, 0))
    fresh = _two_classes(4_000, 1)
    logits = fresh["x0"] * np.where(fresh["y"] == "yes", 1.0, -1.0)
    truth = -np.log1p(np.exp(-logits)).mean()
    loss = model.evaluate(fresh)["log_likelihood"] - truth
    # a logistic regression with six parameters loses about 6/(2·500) = 0.006 nats
    assert loss > -0.02


def test_out_of_fold_scores_are_of_members_that_did_not_learn_the_row() -> None:
    columns = _skewed(60, 2)
    problem = _problem(columns)
    candidate = _candidate(problem)
    problem = joined(problem, [candidate])
    fit = Fitting(problem, _stages(), "one-").fit()
    scores = problem.log_scores(fit.state)
    engine, ready = problem._left_out(fit.state, 1)
    index, sampling = problem.folds.rows(1), engine.best_sampling(problem.model.default_seed, 100)
    rows = problem.rows[index]
    alone = [one.mixture.log_prob(one.targets) for one in engine.labelled(ready, rows, sampling)]
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


def _problem(columns: Columns) -> FoldProblem:
    config = _resolve(columns)
    config = replace(config, training=replace(config.training, epochs=4))
    problem = prepare(columns, types_of(columns), config)
    assert isinstance(problem, FoldProblem)
    return problem


def _candidate(problem: FoldProblem) -> Any:
    model = problem.model
    first = first_candidate(problem.folds.count, model.config.likelihood, model.target, 60)
    return first.with_part(hidden=(8,))


def _stages() -> StageRunner:
    return StageRunner(ProgressReporter(100, ignore), lambda: False, None)


ROWS = 400


def _attempt(scores: Tensor, kl_weight: float = 0.1, **part: Any) -> Attempt:
    config = PartConfig(hidden=(8,), kl_weight=kl_weight, **part)
    candidate = Candidate(config, "heteroscedastic", NumberTarget(0.0, 1.0))
    return Attempt(candidate, Fit(None, [], 0), scores.double())


def _noise(seed: int) -> Tensor:
    return torch.randn(ROWS, generator=torch.Generator().manual_seed(seed))


def test_a_clearly_worse_candidate_is_left_out() -> None:
    good = _attempt(_noise(0))
    worse = _attempt(_noise(0) - 1.0, kl_weight=1.0)  # worse on every row alike
    assert keep([worse, good], most=3) == [good]


def test_candidates_within_a_standard_error_are_averaged() -> None:
    first, second = _attempt(_noise(0)), _attempt(_noise(1), kl_weight=1.0)
    behind = paired(first.scores, second.scores)
    assert abs(behind.difference) < behind.standard_error, "or the seeds do not fit this test"
    assert set(map(id, keep([first, second], most=3))) == {id(first), id(second)}


def test_of_many_ties_those_are_kept_that_help_the_mixture_most() -> None:
    base = _noise(0)
    best = _attempt(base + 0.01)
    twin = _attempt(base + 0.005, kl_weight=0.3)
    complement = _attempt(-base, kl_weight=1.0)  # as good, and right where the others are wrong
    assert keep([twin, best, complement], most=2)[1] is complement


def test_trees_alone_are_kept_beside_what_reads_columns() -> None:
    base = _noise(0)
    alone, columns = _attempt(base, inputs="none", boosted=True), _attempt(base - 1.0)
    assert keep([alone, columns], most=3) == [columns, alone]
    assert keep([alone, columns], most=1) == [columns]
    note = describe([alone, columns], [columns])["note"]
    assert note.endswith(" is kept: trees alone, 8, KL 0.1 is better, but reads no columns")


def test_variational_candidates_win_ties_against_point_estimates() -> None:
    scores = _noise(0)
    variational, points = _attempt(scores), _attempt(scores + 1e-6 * _noise(1), kl_weight=0.0)
    assert keep([points, variational], most=3) == [variational]
    assert not any(
        "point estimates" in note for note in notes_on([points, variational], [variational])
    )


def test_point_estimates_that_are_clearly_better_are_kept_and_noted() -> None:
    variational, points = _attempt(_noise(0)), _attempt(_noise(0) + 0.25, kl_weight=0.0)
    kept = keep([points, variational], most=1)
    assert kept == [points]
    assert any("0.25 nats per row" in note for note in notes_on([points, variational], kept))
