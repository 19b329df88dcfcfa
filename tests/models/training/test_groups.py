"""Trainings with groups: what is learned, stored, answered and refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from models.artifact.files import read_model, write_model
from models.config import FeatureConfig, MLPConfig, TrainingConfig
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import Columns
from models.prediction.options import PredictOptions
from models.prediction.prediction import Interval
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained

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


def _train(columns: Columns, types: dict[str, str] | None = None, **config: object) -> TabularModel:
    wanted: dict[str, object] = {
        "features": (FeatureConfig(name="x", type="number"),),
        "network": MLPConfig(hidden=(8,)),
        "training": QUICK,
        "pruning": (),
    }
    return trained(columns, types, **wanted | config)


@pytest.fixture(scope="module")
def grouped() -> TabularModel:
    return _train(_table(1_500, 0))


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
    plain = _train(_table(1_500, 0), training=replace(QUICK, groups=None))
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
        _train(columns, training=replace(QUICK, groups=name))
    assert caught.value.path == "/training/groups"
