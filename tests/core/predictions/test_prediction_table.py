"""Predictions as tables, and as rows that are stored."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

from core.clock import now
from core.database.database import Database
from core.database.schema import ModelRow
from core.datasets.columns.packing import pack, unpack
from core.exceptions import NotFound
from core.predictions.prediction_table import to_table
from core.predictions.stored_predictions import PackedRows, StoredPredictions
from models.features.columns import InputColumn
from models.prediction.answers.reasons import COMBINATION, Levels, Range, Reason
from models.prediction.declared_outputs import CLASS, LEVEL
from models.prediction.options import ResolvedOptions
from models.prediction.prediction import ClassName, RowPrediction
from tests.core.conftest import version_row

NUMBERS = RowPrediction(
    task="regression",
    samples=100,
    seed=7,
    sampler="monte_carlo",
    prune=0.5,
    coordinates={LEVEL: (0.5, 0.9)},
    values={
        "mean": np.array([1.0, 2.0]),
        "aleatoric_variance": np.array([0.1, 0.2]),
        "epistemic_variance": np.array([0.3, 0.4]),
        "total_variance": np.array([0.4, 0.6]),
        "out_of_distribution": np.array([False, True]),
        "ood_score": np.array([0.3, np.inf]),
        "lower": np.array([[0.5, 0.0], [1.5, 1.0]]),
        "upper": np.array([[1.5, 2.0], [np.inf, 3.0]]),
        "conformal_lower": np.array([[0.4, -1.0], [1.4, -np.inf]]),
        "conformal_upper": np.array([[1.6, 3.0], [2.6, np.inf]]),
        "mc_error": np.array([0.01, np.nan]),
    },
)


def classes(*names: ClassName) -> RowPrediction:
    probabilities = np.array([[0.25, 0.75], [0.5, 0.5]])
    entropy = np.array([0.5, 0.6])
    intervals = ("lower", "upper", "conformal_lower", "conformal_upper")
    found = replace(
        NUMBERS, task="classification", coordinates={CLASS: names}, constants={"classes": names}
    )
    return found.without(*intervals).with_values(
        mean=probabilities,
        mc_error=probabilities / 100,
        label=[names[1], names[0]],
        predictive_entropy=entropy,
        expected_entropy=entropy / 2,
        mutual_information=entropy / 3,
    )


@pytest.mark.parametrize(
    ("names", "columns", "type_"),
    [
        ((False, True), ("false", "true"), pa.bool_()),
        ((0, 1), ("0", "1"), pa.int64()),
        ((0, int(1e30)), ("0", str(int(1e30))), pa.float64()),
    ],
)
def test_labels_keep_the_type_of_the_classes(
    names: tuple[ClassName, ...], columns: tuple[str, ...], type_: pa.DataType
) -> None:
    table = to_table(classes(*names))
    assert table.column_names[1:3] == [f"probability_{column}" for column in columns]
    assert table.schema.field("label").type == type_
    assert table.column("label").to_pylist() == [names[1], names[0]]


def test_reasons_have_one_type_whatever_the_columns() -> None:
    """Values of all types are texts, so that tables of chunks can be joined."""
    age = Reason("age", "out_of_range", 900, Range(17, 90))
    job = Reason("job", "unseen_level", "pilot", Levels(("baker", "nurse"), 2))
    paid = Reason("paid", "missing_unseen", None, Levels((False,), 1))
    tables = [
        to_table(NUMBERS.with_values(reasons=rows))
        for rows in ([(), (age, job)], [(COMBINATION,), (paid,)], [(), ()])
    ]
    assert len({table.schema for table in tables}) == 1
    none, both, whole, missing, *_ = pa.concat_tables(tables)["reasons"].to_pylist()
    assert none == []
    assert [one["value"] for one in both] == ["900", "pilot"]
    assert both[0]["seen"] == {"lowest": "17", "highest": "90", "levels": None, "count": None}
    assert both[1]["seen"] == {
        "lowest": None, "highest": None, "levels": ["baker", "nurse"], "count": 2,
    }  # fmt: skip
    assert (whole[0]["column"], whole[0]["seen"]) == (None, None)
    assert missing[0]["seen"]["levels"] == ["false"]


OPTIONS = ResolvedOptions(
    samples=37,
    seed=2**31 - 1,
    prune=0.95,
    intervals=(0.5, 0.9),
    sampler="sobol",
    top=10,
    horizon=3,
)
INPUTS = (
    InputColumn(name="number", type="number", missing=True),
    InputColumn(name="boolean", type="boolean"),
    InputColumn(name="category", type="category"),
    InputColumn(name="datetime", type="datetime"),
    InputColumn(name="tensor", type="tensor", shape=(2, 3)),
)


@pytest.fixture
def stored(database: Database) -> StoredPredictions:
    with database.begin() as session:
        session.add(ModelRow(name="square", last_version=1))
        session.flush()
        session.add(version_row(1))
    return StoredPredictions(database, max_bytes=2**20)


def test_packed_columns_come_back_bit_for_bit() -> None:
    columns = {
        "number": np.array([0.1, np.nan, -1e38, 2**53 + 1.0]),
        "boolean": np.array([0.0, 1.0, np.nan, 1.0]),
        "category": np.array(["oak", None, "", "Ünï\u2028code"], dtype=object),
        "datetime": np.array(["2026-01-31T08:00:00.123456", "NaT", "0001-01-01", "9999"], "M8[us]"),
        "tensor": np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32),
    }  # fmt: skip
    packed = pack(columns, INPUTS)
    back = unpack(packed, INPUTS)
    assert list(back) == list(columns)
    for name, values in columns.items():
        assert back[name].dtype == values.dtype
        if name == "category":
            assert back[name].tolist() == values.tolist()
        else:
            assert back[name].tobytes() == values.tobytes()


def test_only_what_is_old_is_swept(stored: StoredPredictions) -> None:
    old = stored.add("square", 1, OPTIONS, PackedRows(1, b"old"))
    between = now()
    new = stored.add("square", 1, OPTIONS, PackedRows(1, b"new"))
    stored.sweep(between - timedelta(days=1))
    assert stored.get(old).packed.inputs == b"old"
    stored.sweep(between)
    assert stored.get(new).packed.inputs == b"new"
    with pytest.raises(NotFound):
        stored.get(old)
