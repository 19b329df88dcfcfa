"""Weights of rows and of classes: what is learned with whole ones is learned from repeated rows."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from models.config import (
    BBBConfig,
    FeatureConfig,
    LikelihoodConfig,
    MAPConfig,
    MethodConfig,
    MLPConfig,
    ModelConfig,
    SGLDConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.features import moments
from models.features.categories import target_scores
from models.features.columns import Columns
from models.features.feature_encoder import FeatureEncoder
from models.features.rows import Rows
from models.features.target_shapes import describe_target
from models.features.targets import NumberTarget
from models.features.weights import with_class_weights
from models.inference.chains import LogPosterior
from models.inference.point import DrawsState
from models.inference.registry import build_method
from models.posteriors.priors import GaussianPrior
from models.randomness import generator
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.tabular.row_problem import RowProblem
from models.training.train import train
from tests.models.conftest import assert_close
from tests.models.training.fitting import resolved, types_of

ROWS = 120
TYPES = {"x": "number", "k": "category", "y": "number", "c": "category", "w": "number"}
METHODS: dict[str, MethodConfig] = {
    "bbb": BBBConfig(),
    "weight": BBBConfig(estimator="weight"),
    "map": MAPConfig(kind="map"),
    "sgld": SGLDConfig(kind="sgld", chains=2, draws=5, burn_in=10, thinning=2),
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


def _resolved(columns: Columns, target: str, method: MethodConfig, **settings: Any) -> ModelConfig:
    options = {
        "network": MLPConfig(hidden=(6,)),
        "training": TrainingConfig(epochs=3, batch_size=32, fine_tune_epochs=1, background=0),
    }
    kept = {name: columns[name] for name in ("x", "k", target, "w")}
    return resolved(
        kept, target=target, weight="w", method=method, reads=True, **options | settings
    )


def _train(columns: Columns, target: str, method: MethodConfig) -> TabularModel:
    kept = {name: columns[name] for name in ("x", "k", target, "w")}
    model = train(kept, types_of(kept), _resolved(columns, target, method))
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


@pytest.mark.parametrize(
    ("name", "target"), [("bbb", "y"), ("bbb", "c"), ("map", "y"), ("sgld", "y")]
)
def test_rows_of_weight_0_are_as_good_as_absent(target: str, name: str) -> None:
    """Recipe, encoders, weights, calibration, detector and metrics are the same, bit for bit."""
    columns = _columns()
    without = _train(columns, target, METHODS[name])
    mixed = _train(_mixed(columns), target, METHODS[name])
    assert "60 rows of weight 0 were left out" in mixed.notes
    assert _facts(mixed) == _facts(without)


@pytest.mark.parametrize("value", [np.nan, -1.0, np.inf])
def test_weights_that_are_no_weights_are_refused(value: float) -> None:
    columns = _columns()
    config = _resolved(columns, "y", BBBConfig())
    columns["w"][3] = value
    with pytest.raises(InvalidData, match="'w'"):
        prepare(columns, TYPES, config)


def _problem(method: MethodConfig) -> RowProblem:
    columns = _columns()
    problem = prepare(columns, TYPES, _resolved(columns, "y", method))
    assert problem.rows.weights is not None
    return problem


def _repeated(rows: Rows) -> Rows:
    assert rows.weights is not None
    index = torch.arange(len(rows)).repeat_interleave(rows.weights.long())
    return Rows(rows.inputs[index], rows.targets[index])


@pytest.mark.parametrize("name", ["weight", "map"])
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


CLASS_ROWS = 300
BALANCED = TrainingConfig(epochs=3, batch_size=32, class_weight="balanced", background=0)
CLASS_TYPES = {"x": "number", "c": "category", "w": "number"}


def _class_columns() -> Columns:
    random = np.random.default_rng(0)
    c = random.choice(["a", "b", "rare"], CLASS_ROWS, p=[0.6, 0.35, 0.05])
    centres = {"a": -1.0, "b": 0.0, "rare": 1.0}
    x = np.array([centres[name] for name in c]) + random.normal(size=CLASS_ROWS)
    return {"x": x, "c": c.astype(object), "w": random.integers(1, 4, CLASS_ROWS).astype(float)}


def _class_config(
    method: MethodConfig, training: TrainingConfig, weight: str | None
) -> ModelConfig:
    used = {n: v for n, v in _class_columns().items() if n != "w" or weight is not None}
    return resolved(
        used,
        target="c",
        weight=weight,
        method=method,
        network=MLPConfig(hidden=(6,)),
        training=training,
        pruning=(),
        reads=True,
    )


def test_the_weights_are_those_of_scikit_learn() -> None:
    numbers = np.random.default_rng(0).choice(3, 200, p=[0.7, 0.25, 0.05])
    found = with_class_weights(BALANCED, numbers, slice(None), None)
    assert found is not None
    assert found == pytest.approx(compute_sample_weight("balanced", numbers))
    assert found.sum() == pytest.approx(200)


@pytest.mark.parametrize("name", ["bbb", "map", "sgld"])
def test_each_method_learns_what_it_learns_from_a_column_of_these_weights(name: str) -> None:
    """The same weights as a column give the same posterior, bit for bit."""
    columns, method = _class_columns(), METHODS[name]
    config = _class_config(method, BALANCED, None)
    problem = prepare(columns, CLASS_TYPES, config)
    learned = problem.rows if problem.stopping is None else problem.refit().rows
    names = np.array(problem.model.classes)[learned.targets.numpy()]
    weights = compute_class_weight("balanced", classes=np.unique(names), y=names)
    factors = dict(zip(np.unique(names).tolist(), weights, strict=True))
    columns = {**columns, "w": np.array([factors[c] for c in columns["c"].tolist()])}
    plain = _class_config(method, replace(BALANCED, class_weight="none"), "w")
    plain = replace(plain, features=config.features)
    models = [train(columns, CLASS_TYPES, one) for one in (config, plain)]
    for one, other in zip(*(m.variants_by_prune[0.0].state.tensors() for m in models), strict=True):
        assert torch.equal(one, other)
    assert any("all classes are equally frequent" in note for note in models[0].notes)
    assert isinstance(models[0], TabularModel)


LEARNED = 150
RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.integers(1, 5, LEARNED).astype(float)
TIMES = WEIGHTS.astype(int)
SKEWED = np.exp(RANDOM.normal(size=LEARNED))
DRIFTING = np.where(RANDOM.random(LEARNED) < 0.2, 0.0, RANDOM.normal(size=LEARNED).round(1))
LEVELS = np.array([f"l{i}" for i in RANDOM.integers(0, 60, LEARNED)], dtype=object)
TIMES_OF_DAY = np.datetime64("2026-01-01", "us") + (
    RANDOM.integers(0, 20_000, LEARNED) * np.timedelta64(60_000_000, "us")
)
KINDS = {"s": "number", "d": "number", "l": "category", "t": "datetime"}
COLUMNS = {
    "s": np.where(np.arange(LEARNED) % 17 == 0, np.nan, SKEWED),
    "d": DRIFTING,
    "l": np.where(np.arange(LEARNED) % 13 == 0, None, LEVELS),
    "t": TIMES_OF_DAY,
}
FEATURES = tuple(FeatureConfig(name=name, type=kind) for name, kind in KINDS.items())  # type: ignore[arg-type]


def _repeat(values: np.ndarray) -> np.ndarray:
    return np.repeat(values, TIMES, axis=0)


@pytest.mark.parametrize(("pieces", "classes"), [(False, False), (True, False), (True, True)])
def test_encoders_are_those_of_repeated_rows(pieces: bool, classes: bool) -> None:
    """Means, deviations, power, scores, edges and their centres, slots, effects, new levels."""
    targets = np.digitize(SKEWED, [0.5, 1.5]) if classes else SKEWED
    kinds = dict(KINDS)
    scores = target_scores(targets, classes=classes, weights=WEIGHTS) if pieces else None
    found = FeatureEncoder.fit(
        FEATURES, kinds, COLUMNS, pieces=pieces, targets=scores, rate=0.3, weights=WEIGHTS
    )
    many = {name: _repeat(values) for name, values in COLUMNS.items()}
    other = target_scores(_repeat(targets), classes=classes) if pieces else None
    wanted = FeatureEncoder.fit(FEATURES, kinds, many, pieces=pieces, targets=other, rate=0.3)
    assert_close(asdict(found), asdict(wanted))
    if scores is not None and other is not None:
        folds = np.arange(LEARNED) % 4
        by_fold = found.by_fold(COLUMNS, scores, folds, WEIGHTS)
        assert by_fold
        one = found.encode_folds(by_fold, COLUMNS, folds)
        by_fold = wanted.by_fold(many, other, _repeat(folds))
        two = wanted.encode_folds(by_fold, many, _repeat(folds))
        index = torch.arange(LEARNED).repeat_interleave(torch.from_numpy(TIMES))
        torch.testing.assert_close(one[index], two, rtol=1e-4, atol=1e-4)


LIKELIHOOD = LikelihoodConfig(kind="mixture", components=3)


@pytest.mark.parametrize(
    "values", [SKEWED, DRIFTING, np.round(5 * SKEWED), RANDOM.beta(2, 3, LEARNED)]
)
def test_targets_are_those_of_repeated_rows(values: np.ndarray) -> None:
    """Support, whole numbers, atoms, scales, and mean and deviation on each of them."""
    found = describe_target(values, None, LIKELIHOOD, WEIGHTS)
    wanted = describe_target(_repeat(values), None, LIKELIHOOD)
    assert_close([asdict(one) for one in found], [asdict(one) for one in wanted])
    assert_close(
        asdict(NumberTarget.fit(values, WEIGHTS)), asdict(NumberTarget.fit(_repeat(values)))
    )


def test_quantiles_are_those_of_repeated_rows() -> None:
    shares = [0.0, 0.05, 0.5, 0.9, 1.0]
    found = moments.quantile(SKEWED, shares, WEIGHTS)
    assert found == pytest.approx(np.quantile(_repeat(SKEWED), shares), rel=1e-9)
