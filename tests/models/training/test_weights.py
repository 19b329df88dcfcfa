"""Row weights end to end: 0 is as good as absent, and whole weights as good as repeated rows."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from models.config import (
    BBBConfig,
    CyclicalSGLDConfig,
    DropoutConfig,
    EnsembleConfig,
    MAPConfig,
    MethodConfig,
    MetropolisConfig,
    MLEConfig,
    MLPConfig,
    ModelConfig,
    SGLDConfig,
    SWAGConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Columns
from models.features.rows import Rows
from models.inference.builders import build_method
from models.inference.chains import LogPosterior
from models.inference.point import DrawsState
from models.posteriors.priors import GaussianPrior
from models.randomness import generator
from models.tabular.fold_problem import FoldProblem
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.tabular.problem import RowProblem
from models.training.recipe import resolve
from models.training.train import train

ROWS = 120
TYPES = {"x": "number", "k": "category", "y": "number", "c": "category", "w": "number"}
METHODS: dict[str, MethodConfig] = {
    "bbb": BBBConfig(),
    "weight": BBBConfig(estimator="weight"),
    "map": MAPConfig(kind="map"),
    "mle": MLEConfig(kind="mle"),
    "ensemble": EnsembleConfig(kind="ensemble", members=2),
    "mc_dropout": DropoutConfig(kind="mc_dropout"),
    "swag": SWAGConfig(kind="swag", epochs=3, rank=2),
    "sgld": SGLDConfig(kind="sgld", chains=2, draws=5, burn_in=10, thinning=2),
    "csgld": CyclicalSGLDConfig(kind="csgld", chains=2, cycles=1, cycle_steps=20, draws=4),
    "metropolis": MetropolisConfig(kind="metropolis", chains=2, draws=5, burn_in=10, thinning=2),
}


def _columns(weights: np.ndarray | None = None) -> Columns:
    random = np.random.default_rng(0)
    x = random.normal(size=ROWS)
    y = np.sin(2 * x) + 0.2 * random.normal(size=ROWS)
    k = np.array([f"level {i}" for i in random.integers(0, 25, ROWS)], dtype=object)
    c = np.where(y > 0, "up", "down").astype(object)
    w = random.integers(1, 4, ROWS).astype(float) if weights is None else weights
    return {"x": x, "k": k, "y": y, "c": c, "w": w}


def _mixed(columns: Columns) -> Columns:
    """The rows, and between them others of weight 0 that would change everything."""
    random, count = np.random.default_rng(1), len(columns["x"])
    places = np.sort(random.integers(0, count, 60))
    noise = {
        "x": random.normal(5, 30, 60),
        "k": np.array([f"other {i}" for i in range(60)], dtype=object),
        "y": random.normal(-100, 50, 60),
        "c": np.array(["down"] * 60, dtype=object),
        "w": np.zeros(60),
    }
    return {name: np.insert(values, places, noise[name]) for name, values in columns.items()}


def _resolved(columns: Columns, target: str, method: MethodConfig, **settings: object):
    names = ["x", "k", target, "w"]
    profiles = [_profile(name, columns[name]) for name in names]
    training = settings.pop("training", TrainingConfig(epochs=3, batch_size=32, fine_tune_epochs=1))
    config = ModelConfig(
        target=target,
        weight="w",
        method=method,
        training=training,  # type: ignore[arg-type]
        **({"network": MLPConfig(hidden=(6,))} | settings),  # type: ignore[arg-type]
    )
    return resolve(
        config, profiles, len(columns["x"]), lambda names: {n: columns[n] for n in names}
    )


def _profile(name: str, values: np.ndarray) -> ColumnProfile:
    if TYPES[name] == "category":
        levels, counts = np.unique(values.astype(str), return_counts=True)
        ordered = levels[np.argsort(-counts, kind="stable")]
        return ColumnProfile(
            name=name, type="category", levels=tuple(ordered[:100]), num_levels=len(levels)
        )
    return ColumnProfile(name=name, type="number", min=float(values.min()), max=float(values.max()))


def _train(columns: Columns, target: str, method: MethodConfig, **settings: object) -> TabularModel:
    config = _resolved(columns, target, method, **settings)
    names = ["x", "k", target, "w"]
    types = {name: TYPES[name] for name in names}
    model = train({name: columns[name] for name in names}, types, config)
    assert isinstance(model, TabularModel)
    return model


def _facts(model: TabularModel) -> dict[str, object]:
    """All that a training found, with its notes except the one on rows of weight 0."""
    notes = [note for note in model.notes if "weight 0" not in note]
    variants = {
        prune: (one.metrics, one.calibration, one.detector, one.state.tensors())
        for prune, one in model.variants_by_prune.items()
    }
    return {
        "config": model.config,
        "encoders": model.encoder.encoders,
        "target": model.target,
        "history": model.history,
        "selection": model.selection,
        "card": model.card,
        "notes": notes,
        "variants": {p: one[:3] for p, one in variants.items()},
        "tensors": {p: [t.tolist() for t in one[3]] for p, one in variants.items()},
    }


@pytest.mark.training
@pytest.mark.parametrize("target", ["y", "c"])
@pytest.mark.parametrize("name", list(METHODS))
def test_rows_of_weight_0_are_as_good_as_absent(target: str, name: str) -> None:
    """Recipe, encoders, weights, calibration, detector and metrics are the same, bit for bit."""
    columns = _columns()
    without = _train(columns, target, METHODS[name])
    mixed = _train(_mixed(columns), target, METHODS[name])
    assert "60 rows of weight 0 were left out" in mixed.notes
    assert _facts(mixed) == _facts(without)


RACE = {"network": MLPConfig(), "training": TrainingConfig(effort="quick", epochs=2)}


def _race(columns: Columns) -> FoldProblem:
    problem = prepare(columns, TYPES, _resolved(columns, "y", BBBConfig(), **RACE))
    assert isinstance(problem, FoldProblem)
    return problem


def test_a_race_starts_from_the_same_rows_without_those_of_weight_0() -> None:
    """All that a race does follows from these."""
    without, mixed = _race(_columns()), _race(_mixed(_columns()))
    assert mixed.model.config == without.model.config
    assert mixed.model.encoder == without.model.encoder
    assert mixed.model.target == without.model.target
    assert mixed.profile == without.profile
    torch.testing.assert_close(mixed.folds.of_row, without.folds.of_row, rtol=0, atol=0)
    for name in ("rows", "scores"):
        found, wanted = getattr(mixed, name), getattr(without, name)
        for part in ("inputs", "targets", "weights"):
            torch.testing.assert_close(getattr(found, part), getattr(wanted, part), rtol=0, atol=0)


@pytest.mark.parametrize("value", [np.nan, -1.0, np.inf])
def test_weights_that_are_no_weights_are_refused(value: float) -> None:
    columns = _columns()
    config = _resolved(columns, "y", BBBConfig())
    columns["w"][3] = value
    with pytest.raises(InvalidData, match=r"column 'w' cannot weigh rows.*has (nan|-1|inf)"):
        prepare(columns, TYPES, config)


def test_a_table_of_weight_0_is_refused() -> None:
    columns = _columns()
    config = _resolved(columns, "y", BBBConfig())
    with pytest.raises(InvalidData, match="0 rows have a target and a weight above 0"):
        prepare(columns | {"w": np.zeros(ROWS)}, TYPES, config)


@pytest.mark.parametrize(
    ("factor", "found"),
    [
        (100.0, ["the mean row weight is 195: "]),
        (1.0, []),
        (0.2, ["the weights of the 19 calibration rows add up to 6.6"]),
    ],
)
def test_unusual_weights_have_a_note(factor: float, found: list[str]) -> None:
    columns = _columns()
    columns["w"] *= factor
    notes = prepare(columns, TYPES, _resolved(columns, "y", BBBConfig())).model.notes
    about = [note for note in notes if "weight" in note]
    assert len(about) == len(found)
    assert all(note.startswith(start) for note, start in zip(about, found, strict=True))


def _problem(method: MethodConfig) -> RowProblem:
    columns = _columns()
    problem = prepare(columns, TYPES, _resolved(columns, "y", method))
    assert problem.rows.weights is not None
    return problem


def _repeated(rows: Rows) -> Rows:
    assert rows.weights is not None
    index = torch.arange(len(rows)).repeat_interleave(rows.weights.long())
    return Rows(rows.inputs[index], rows.targets[index])


@pytest.mark.parametrize("name", ["weight", "map", "mle", "ensemble", "swag"])
def test_the_objective_is_that_of_repeated_rows(name: str) -> None:
    """Values and gradients per row of the whole data: weights count in the KL's share, too."""
    problem = _problem(METHODS[name])
    repeated = replace(problem, rows=_repeated(problem.rows))
    found, wanted = (_loss_and_gradient(one) for one in (problem, repeated))
    for mine, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-6)


def _loss_and_gradient(problem: RowProblem) -> list[torch.Tensor]:
    model, task = problem.model, problem.task
    method = build_method(model.config.method, model.network, model.likelihood, task.num_data)
    state = method.init(generator(0, "init"))
    parameters = [tensor.requires_grad_() for tensor in state.parameters()]
    every = torch.arange(len(problem.rows))
    noise = generator(0, "noise")
    loss, _ = task.loss(method, state, every, kl_weight=1.0, noise=noise, carried=())
    gradients = torch.autograd.grad(loss.nelbo, parameters)
    return [loss.nll.detach(), loss.kl.detach(), loss.nelbo.detach(), *gradients]


def test_mini_batches_estimate_the_weighted_objective() -> None:
    """The mean over the mini-batches of an epoch is the whole batch's, whatever the weights."""
    problem = _problem(METHODS["map"])
    model, task = problem.model, problem.task
    method = build_method(model.config.method, model.network, model.likelihood, task.num_data)
    state = method.init(generator(0, "init"))
    every = torch.arange(len(problem.rows))

    def nelbo(batch: torch.Tensor) -> torch.Tensor:
        noise = generator(0, "noise")
        return task.loss(method, state, batch, kl_weight=1.0, noise=noise, carried=())[0].nelbo

    parts = torch.stack([nelbo(part) for part in every.split(1)])
    torch.testing.assert_close(parts.mean(), nelbo(every), rtol=1e-4, atol=1e-6)


def test_the_density_of_chains_is_that_of_repeated_rows() -> None:
    problem = _problem(METHODS["sgld"])
    model = problem.model
    rows = problem.task.expanded
    repeated = _repeated(rows)
    method = build_method(model.config.method, model.network, model.likelihood, len(rows))
    state = method.init(generator(0, "init"))
    assert isinstance(state, DrawsState)
    values = torch.cat([tensor.detach().flatten(1) for tensor in state.parameters()], dim=1)
    terms = [
        LogPosterior(model.network, model.likelihood, GaussianPrior(1.0), len(some))(values, some)
        for some in (rows, repeated)
    ]
    torch.testing.assert_close(terms[0].log_density, terms[1].log_density, rtol=1e-5, atol=1e-4)


def test_the_score_of_an_epoch_is_that_of_repeated_rows() -> None:
    method = MAPConfig(kind="map")
    problem = _problem(method)
    assert problem.stopping is not None
    repeated = replace(problem, stopping=_repeated(problem.stopping))
    model = problem.model
    built = build_method(method, model.network, model.likelihood, len(problem.rows))
    state = built.init(generator(0, "init"))
    assert problem.score(state) == pytest.approx(repeated.score(state), rel=1e-5)


@pytest.mark.training
def test_metrics_calibration_and_detector_are_those_of_repeated_rows() -> None:
    """Of one fit; the model's members vote the same way on a row and on its copies."""
    problem = _problem(MAPConfig(kind="map"))
    assert problem.calibration is not None
    repeated = replace(
        problem, calibration=_repeated(problem.calibration), scores=_repeated(problem.scores)
    )
    fitted = _train(_columns(), "y", MAPConfig(kind="map"))
    state = fitted.variants_by_prune[0.0]
    bare = problem.model.with_variants({0.0: replace(state, calibration=None, metrics={})})
    found, wanted = (one.finish(bare).variants_by_prune[0.0] for one in (problem, repeated))
    assert found.calibration is not None
    assert wanted.calibration is not None
    assert asdict(found.calibration)["variance_scale"] == pytest.approx(
        asdict(wanted.calibration)["variance_scale"], rel=1e-4
    )
    assert found.detector is not None
    assert wanted.detector is not None
    # A copy is no further evidence of the threshold: a bound counts the rows, not their weight.
    assert (found.detector.rows, wanted.detector.rows) == (
        len(problem.scores),
        len(repeated.scores),
    )
    assert replace(found.detector, rows=wanted.detector.rows) == wanted.detector
    for score in ("log_likelihood", "rmse", "mae", "crps", "aurc"):
        assert found.metrics[score] == pytest.approx(wanted.metrics[score], rel=1e-4)
    for score in ("coverage", "conformal_coverage", "conformal_width", "interval_width"):
        assert found.metrics[score] == pytest.approx(wanted.metrics[score], rel=1e-4)
    assert found.metrics["weight"] == wanted.metrics["rows"]


@pytest.mark.training
def test_an_evaluation_is_that_of_repeated_rows() -> None:
    model, columns = _train(_columns(), "y", MAPConfig(kind="map")), _columns()
    columns["w"][:10] = 0
    times = columns["w"].astype(int)
    repeated = {name: np.repeat(v, times) for name, v in columns.items() if name != "w"}
    found, wanted = model.evaluate(columns), model.evaluate(repeated)
    for score in ("log_likelihood", "rmse", "crps", "coverage", "conformal_coverage", "aurc"):
        assert found[score] == pytest.approx(wanted[score], rel=1e-4)
    assert found["rows"] == ROWS - 10
    with pytest.raises(InvalidData, match="no row has a 'y' to compare with and a weight above 0"):
        model.evaluate(columns | {"w": np.zeros(ROWS)})
