"""Trainings with groups: what is learned, stored, answered and refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import FeatureConfig, MLPConfig, ModelConfig, TrainingConfig
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import ColumnProfile, Columns
from models.features.groups import Groups
from models.prediction.options import PredictOptions
from models.prediction.prediction import Interval
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

TYPES = {"x": "number", "y": "number", "place": "category"}
QUICK = TrainingConfig(
    epochs=6, batch_size=64, learning_rate=0.02, calibration_fraction=0.4, groups="place"
)


def _table(rows: int, seed: int) -> dict[str, np.ndarray]:
    """A line whose noise is 10 in the north and 60 in the south."""
    random = np.random.default_rng(seed)
    x, south = random.uniform(-1, 1, rows), random.integers(0, 2, rows)
    y = 300 * x + random.standard_normal(rows) * np.where(south, 60.0, 10.0)
    return {"x": x, "y": y, "place": np.where(south, "south", "north").astype(object)}


def _train(columns: Columns, types: dict[str, str], **config: object) -> TabularModel:
    wanted: dict[str, object] = {
        "target": "y",
        "features": (FeatureConfig(name="x", type="number"),),
        "network": MLPConfig(hidden=(8,)),
        "training": QUICK,
    }
    profiles = [ColumnProfile(name=name, type=types[name], min=0, max=1) for name in columns]
    asked = ModelConfig(**wanted | config)  # type: ignore[arg-type]
    return train(columns, types, resolve(asked, profiles, len(columns["y"])))


@pytest.fixture(scope="module")
def grouped() -> TabularModel:
    return _train(_table(1_500, 0), TYPES)


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
    plain = _train(_table(1_500, 0), TYPES, training=replace(QUICK, groups=None))
    alone = _conformal(plain, new)
    inside = (alone.lower <= new["y"]) & (new["y"] <= alone.upper)
    assert inside[new["place"] == "north"].mean() > 0.97
    assert inside[new["place"] == "south"].mean() < 0.86


def test_groups_change_no_mean(grouped: TabularModel) -> None:
    plain = _train(_table(1_500, 0), TYPES, training=replace(QUICK, groups=None))
    x = {"x": np.linspace(-1, 1, 5), "place": np.array(["north"] * 5, object)}
    found = [model.predict(x, PredictOptions()).mean for model in (grouped, plain)]
    np.testing.assert_array_equal(*found)


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
    with pytest.raises(InvalidInput, match="missing features: place"):
        grouped.predict({"x": np.zeros(1)}, PredictOptions())


def test_a_row_does_not_depend_on_the_groups_of_others(grouped: TabularModel) -> None:
    x = {"x": np.zeros(3), "place": np.array(["north", "south", "north"], object)}
    together = _conformal(grouped, x)
    for row in range(3):
        alone = _conformal(grouped, {name: values[row : row + 1] for name, values in x.items()})
        assert alone.upper[0] == pytest.approx(together.upper[row], rel=1e-5)  # float32


def test_metrics_have_the_coverage_of_groups_and_sizes(grouped: TabularModel) -> None:
    metrics = grouped.variant(0.0).metrics
    parts = metrics["coverage_by_group"]["parts"]
    assert [part["name"] for part in parts] == ["north", "south"]
    assert sum(part["rows"] for part in parts) == metrics["rows"]
    assert parts[0]["width"] < parts[1]["width"] / 2
    assert [p["name"] for p in metrics["coverage_by_size"]["parts"]] == ["low", "middle", "high"]
    columns = _table(600, 2)
    again = grouped.evaluate(columns)["coverage_by_group"]["parts"]
    assert sum(part["rows"] for part in again) == 600


def test_folds_and_a_shape_have_groups_too() -> None:
    """Out-of-fold rows calibrate, and the feature may be the group.

    The networks of the folds learn from two thirds of the rows, so that intervals are a little too
    wide, never too narrow: 1,000 rows a group have a standard error of 1 %.
    """
    training = TrainingConfig(
        effort="quick", epochs=10, batch_size=256, groups="place", learning_rate=0.02
    )
    features = tuple(FeatureConfig(name=n, type=TYPES[n]) for n in ("x", "place"))  # type: ignore[arg-type]
    model = _train(_table(600, 3), TYPES, training=training, features=features, network=MLPConfig())
    assert [c.name for c in model.inputs] == ["x", "place"]
    new = _table(2_000, 4)
    interval = _conformal(model, new)
    inside = (interval.lower <= new["y"]) & (new["y"] <= interval.upper)
    width = interval.upper - interval.lower
    north = new["place"] == "north"
    assert min(inside[north].mean(), inside[~north].mean()) > 0.86
    assert width[north].mean() < width[~north].mean() / 2  # of one width for both: 1


def test_small_groups_are_noted() -> None:
    columns = _table(400, 5)
    columns["place"][:4] = "west"
    model = _train(columns, TYPES)
    (note,) = [note for note in model.notes if note.startswith("groups of 'place'")]
    assert "fewer than 9 calibration rows" in note
    assert "west (" in note


@pytest.mark.parametrize(
    ("type_", "values", "names"),
    [
        ("number", np.array([3.0, 2.5, np.nan, 3.0]), ("2.5", "3")),
        ("boolean", np.array([1.0, 0.0, np.nan, 0.0]), ("false", "true")),
        ("category", np.array(["b", "a", None, "a"], object), ("a", "b")),
        (
            "datetime",
            np.array(["2026-01-02", "2026-01-01T08:00", "NaT", "2026-01-02"], "datetime64[us]"),
            ("2026-01-01T08:00:00", "2026-01-02"),
        ),
    ],
)
def test_groups_are_numbered_by_value(
    type_: str, values: np.ndarray, names: tuple[str, ...]
) -> None:
    groups = Groups.fit("g", type_, values)
    assert groups.names == names
    numbers = groups.numbers({"g": values})
    assert [names[int(n)] if n >= 0 else None for n in numbers] == [
        names[1], names[0], None, names[type_ in ("number", "datetime")],
    ]  # fmt: skip
    assert torch.equal(groups.numbers({"g": values[:1]}), numbers[:1])


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"groups": "plaec"}, "no column 'plaec'; did you mean 'place'"),
        ({"groups": "y"}, "is the target"),
        ({"groups": "x"}, "has 200 values in 200 rows; at most 100"),
        ({"groups": "one"}, "has 1 values"),
    ],
)
def test_columns_that_cannot_be_groups_are_refused(training: dict[str, str], message: str) -> None:
    columns = {**_table(200, 6), "one": np.array(["a"] * 200, object)}
    with pytest.raises(InvalidData, match=message) as caught:
        _train(columns, TYPES | {"one": "category"}, training=replace(QUICK, **training))
    assert caught.value.path == "/training/groups"


def test_only_regressions_have_groups() -> None:
    columns = {**_table(200, 7), "y": np.array(["a", "b"] * 100, object)}
    with pytest.raises(InvalidData, match="which a classification has not"):
        _train(columns, TYPES | {"y": "category"})
