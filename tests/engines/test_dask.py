"""Predictions of partitions of pandas' frames."""

import pyarrow as pa
import pytest

from credence.scoring.model import LoadedModel
from tests.engines.conftest import OPTIONS, check

dd = pytest.importorskip("dask.dataframe", reason="dask is not installed: make test-engines")
engine = pytest.importorskip("credence.engines.dask")


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_frame_has_the_index_of_the_rows(
    model: LoadedModel, rows: pa.Table, wanted: pa.Table, scheduler: str
) -> None:
    frame = rows.to_pandas().set_index("key")
    predictions = engine.predict(model, dd.from_pandas(frame, npartitions=3), **OPTIONS)
    assert list(predictions.columns) == wanted.column_names
    found = predictions.compute(scheduler=scheduler, num_workers=2)
    assert found.index.tolist() == list(range(len(frame)))
    check(found.to_dict("records"), wanted)


def test_empty_partitions_stay_empty(model: LoadedModel, rows: pa.Table) -> None:
    frame = dd.from_pandas(rows.to_pandas().set_index("key"), npartitions=2)
    found = engine.predict(model, frame[frame["size"] > 1e9]).compute(scheduler="sync")
    assert len(found) == 0
    assert "mean" in found
