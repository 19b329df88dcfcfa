"""Predictions by Ray Data, with real workers."""

import pyarrow as pa
import pytest

from core.exceptions import Invalid
from credence.scoring.model import LoadedModel
from tests.engines.conftest import OPTIONS, check

ray = pytest.importorskip("ray", reason="ray is not installed: make test-engines")
engine = pytest.importorskip("credence.engines.ray")
pytestmark = [
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.filterwarnings("ignore"),  # of Ray about what it uses itself
]


def test_batches_get_a_struct(model: LoadedModel, rows: pa.Table, wanted: pa.Table) -> None:
    dataset = ray.data.from_arrow([rows.slice(start, 125) for start in range(0, 500, 125)])
    found = engine.predict(model, dataset, batch_size=100, **OPTIONS).sort("key").take_all()
    assert [row["key"] for row in found] == list(range(500))
    check([row["prediction"] for row in found], wanted)
    with pytest.raises(Invalid, match="/quantiles/0"):
        engine.predict(model, dataset, quantiles=[2.0])
