"""Members, groups and stages of a training."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact import export
from models.artifact.files import read_model, write_model
from models.config import (
    BBBConfig,
    DropoutConfig,
    EnsembleConfig,
    FeatureConfig,
    GaussianPriorConfig,
    LaplaceConfig,
    MethodConfig,
    MLPConfig,
    ModelConfig,
    PartConfig,
    RecurrentConfig,
    SGLDConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import Columns
from models.networks import Stack
from models.prediction.options import PredictOptions
from models.prediction.prediction import Interval
from models.tabular.model import TabularModel
from models.tabular.row_recipe import with_members
from models.training.progress import Progress
from models.training.train import TrainingRun, train
from tests.models.training.fitting import resolved, trained, types_of

PARTS = (
    PartConfig(members=2, hidden=(6,), inputs="plain", noise_path=True),
    PartConfig(members=1, hidden=(5, 4), inputs="piecewise", kl_weight=0.5),
)
METHODS: dict[str, MethodConfig] = {
    "bbb": BBBConfig(prior=GaussianPriorConfig(sigma="per_input")),
    "ensemble": EnsembleConfig(kind="ensemble", members=2),
    "mc_dropout": DropoutConfig(kind="mc_dropout"),
    "laplace": LaplaceConfig(kind="laplace"),
    "sgld": SGLDConfig(kind="sgld", chains=2, draws=5, burn_in=10, thinning=2),
}
STORED = {"ensemble": 6, "sgld": 30}


def _columns() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.normal(size=(160, 2))
    y = np.sin(2 * x[:, 0]) + 0.2 * random.normal(size=160)
    return {"a": x[:, 0], "b": x[:, 1], "y": y, "c": np.where(y > 0, "up", "down").astype(object)}


def _train(
    target: str, method: MethodConfig, likelihood: str | None = None, **settings: object
) -> TabularModel:
    options: dict[str, object] = {
        "network": MLPConfig(parts=PARTS),
        "training": TrainingConfig(epochs=3, batch_size=64, fine_tune_epochs=1, background=0),
        "pruning": (0.5, 0.9) if isinstance(method, BBBConfig) else None,
    }
    columns = {name: _columns()[name] for name in ("a", "b", target)}
    return trained(
        columns, target=target, method=method, likelihood=likelihood, **options | settings
    )


@pytest.mark.parametrize(("name", "target"), [("bbb", "c"), *((name, "y") for name in METHODS)])
def test_every_method_has_members(name: str, target: str, tmp_path: Path) -> None:
    """A model that was read predicts the same; the exported graph has the samples that it says."""
    model = _train(target, METHODS[name], "homoscedastic" if target == "y" else None)
    network = model.network
    assert isinstance(network, Stack)
    written = write_model(model, tmp_path / "model")
    again = read_model(tmp_path / "model")
    assert isinstance(again, TabularModel)
    rows = {key: values[:4] for key, values in _columns().items()}
    for prune in model.variants:
        options = PredictOptions(prune=prune, samples=20)
        before, after = (one.predict(rows, one.resolve(options)) for one in (model, again))
        assert before.samples == after.samples == min(20, STORED.get(name, 20))
        # Kernels of a model that was read are measured, and may round otherwise.
        np.testing.assert_allclose(before.mean, after.mean, rtol=0.02, atol=2e-3)
    exported = export.build(again, samples=20)
    assert exported.description["samples"] == min(21, STORED.get(name, 21))
    outputs = exported.module(*exported.example)
    assert all(bool(values.isfinite().all()) and len(values) == 3 for values in outputs)
    if name in STORED:
        x = torch.tensor(np.stack([rows["a"], rows["b"]], 1))
        whole = again.predict(rows, again.resolve(PredictOptions(samples=100)))
        mean = export.build(again, samples=100).module(x)[0]
        np.testing.assert_allclose(mean.numpy(), whole.mean, rtol=1e-4, atol=1e-5)
    if isinstance(METHODS[name], BBBConfig):
        sizes = [written.variants_by_prune[prune].num_bytes for prune in (0.0, 0.5, 0.9)]
        assert sizes[1] < 0.6 * sizes[0]
        assert sizes[2] < 0.25 * sizes[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"network": MLPConfig(parts=PARTS)},
        {"network": RecurrentConfig(kind="gru")},
        {"task": "forecasting", "network": MLPConfig(hidden=(5,))},
        {"method": METHODS["ensemble"], "members": 1},
    ],
)
def test_members_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    config = replace(ModelConfig(target="y", members=4), **settings)  # type: ignore[arg-type]
    with pytest.raises(InvalidData) as found:
        with_members(config, config.task or "regression")
    assert found.value.path == "/members"


QUICK = TrainingConfig(
    epochs=6,
    batch_size=64,
    learning_rate=0.02,
    calibration_fraction=0.4,
    groups="place",
    background=0,
)


def _table(rows: int, seed: int) -> dict[str, np.ndarray]:
    """A line whose noise is 10 in the north and 60 in the south."""
    random = np.random.default_rng(seed)
    x, south = random.uniform(-1, 1, rows), random.integers(0, 2, rows)
    y = 300 * x + random.standard_normal(rows) * np.where(south, 60.0, 10.0)
    return {"x": x, "y": y, "place": np.where(south, "south", "north").astype(object)}


def _train_with_groups(
    columns: Columns, types: dict[str, str] | None = None, **config: object
) -> TabularModel:
    wanted: dict[str, object] = {
        "features": (FeatureConfig(name="x", type="number"),),
        "network": MLPConfig(hidden=(8,)),
        "training": QUICK,
        "pruning": (),
    }
    return trained(columns, types, **wanted | config)


@pytest.fixture(scope="module")
def grouped() -> TabularModel:
    return _train_with_groups(_table(1_500, 0))


def _conformal(model: TabularModel, columns: Columns) -> Interval:
    answer = model.predict(columns, PredictOptions(interval_kinds=("conformal",)))
    (interval,) = answer.intervals
    return interval


def test_each_group_is_covered(grouped: TabularModel) -> None:
    """300 calibration rows and 3,000 new rows of a group: standard errors of 1.7 and 0.5 %."""
    new = _table(6_000, 1)
    interval = _conformal(grouped, new)
    inside = (interval.lower <= new["y"]) & (new["y"] <= interval.upper)
    for place in ("north", "south"):
        assert inside[new["place"] == place].mean() == pytest.approx(0.9, abs=0.055)
    plain = _train_with_groups(_table(1_500, 0), training=replace(QUICK, groups=None))
    alone = _conformal(plain, new)
    inside = (alone.lower <= new["y"]) & (new["y"] <= alone.upper)
    assert inside[new["place"] == "north"].mean() > 0.97
    assert inside[new["place"] == "south"].mean() < 0.86


def test_the_group_is_an_input_that_may_be_missing(grouped: TabularModel, tmp_path: Path) -> None:
    assert [(c.name, c.type, c.missing) for c in grouped.inputs] == [
        ("x", "number", False),
        ("place", "category", True),
    ]
    write_model(grouped, tmp_path)
    stored = read_model(tmp_path)
    assert isinstance(stored, TabularModel)
    assert stored.groups == grouped.groups
    x = {"x": np.zeros(4), "place": np.array(["north", "south", None, "west"], object)}
    found, wanted = _conformal(stored, x), _conformal(grouped, x)
    np.testing.assert_allclose(found.upper, wanted.upper, rtol=1e-5)  # compiled loops round so
    width = found.upper - found.lower
    assert width[0] < width[2] < width[1]
    assert width[3] == width[2]
    with pytest.raises(InvalidInput):
        grouped.predict({"x": np.zeros(1)}, PredictOptions())


def test_metrics_have_the_coverage_of_groups_and_sizes(grouped: TabularModel) -> None:
    metrics = grouped.variant(0.0).metrics
    parts = metrics["coverage_by_group"]["parts"]
    assert [part["name"] for part in parts] == ["north", "south"]
    assert sum(part["rows"] for part in parts) == metrics["rows"]
    assert parts[0]["width"] < parts[1]["width"] / 2
    for by in ("size", "deviation"):
        thirds = metrics[f"coverage_by_{by}"]["parts"]
        assert [part["name"] for part in thirds] == ["low", "middle", "high"]
    columns = _table(600, 2)
    again = grouped.evaluate(columns)["coverage_by_group"]["parts"]
    assert sum(part["rows"] for part in again) == 600


@pytest.mark.parametrize(
    "name",
    ["plaec", "y", "x", "one"],
)
def test_columns_that_cannot_be_groups_are_refused(name: str) -> None:
    columns = {**_table(200, 6), "one": np.array(["a"] * 200, object)}
    with pytest.raises(InvalidData) as caught:
        _train_with_groups(columns, training=replace(QUICK, groups=name))
    assert caught.value.path == "/training/groups"


@pytest.mark.parametrize("sigma", ["auto", 0.5])
def test_the_fit_goes_on_for_a_quarter_of_the_epochs_that_it_took(sigma: float | str) -> None:
    """Noise alone is overfitted from the first epochs on: the best one comes early."""
    random = np.random.default_rng(0)
    columns = {name: random.normal(size=80) for name in ("a", "b", "c", "y")}
    config = resolved(
        columns,
        method=LaplaceConfig(kind="laplace", prior_sigma=sigma),  # type: ignore[arg-type]
        network=MLPConfig(hidden=(20,)),
        training=TrainingConfig(
            epochs=100, learning_rate=0.03, stopping_fraction=0.3, background=0
        ),
    )
    seen: list[Progress] = []
    model = train(columns, types_of(columns), config, TrainingRun(seen.append))
    scores = [epoch["held_out_log_likelihood"] for epoch in model.history]
    best = 1 + int(np.argmax(scores))
    assert best < 60
    stages = {progress.stage: progress.epochs for progress in seen}
    epochs = math.ceil(best / 4) if sigma == "auto" else None
    assert stages.get("refit-laplace") == epochs
    assert sigma != "auto" or seen[-1].fraction == pytest.approx(1.0)
    assert model.variant(0.0).metrics["prior_sigma"]["dense1"] > 0
