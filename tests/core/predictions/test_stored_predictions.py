"""Questions that are kept: the same bit for bit, for as long as they may be asked again."""

from datetime import timedelta

import numpy as np
import pytest

from core.clock import now
from core.database.database import Database
from core.database.schema import ModelRow
from core.datasets.columns.packing import pack, unpack
from core.exceptions import NotFound
from core.predictions.stored_predictions import PackedRows, StoredPredictions
from models.features.columns import InputColumn
from models.prediction.options import ResolvedOptions
from tests.core.predictions.conftest import version_row

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
