"""A whole data set through the client: queued, predicted by the worker, downloaded."""

from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from credence.client import Client
from credence.commands.following import follow
from credence.types import Version

pytestmark = pytest.mark.stack


def test_a_data_set_is_predicted_to_a_file(
    client: Client, version: Version, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = {"model": "small", "dataset": version["dataset"], "seed": 7, "chunk_rows": 25}
    job = follow(client, client.submit_batch(request)["id"])
    progress = {"chunk": 3, "chunks": 3, "fraction": 1.0, "eta_seconds": 0.0}
    assert job["progress"].items() >= progress.items()
    assert "chunk 3/3" in capsys.readouterr().err
    client.download_result(job["id"], tmp_path / "result.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["result.parquet"]
    rows = client.dataset_rows(version["dataset"], 60)
    inputs = [{name: row[name] for name in ("x0", "x1", "kind")} for row in rows]
    online = client.submit_predict({"model": "small", "inputs": inputs, "seed": 7})
    mean = parquet.read_table(tmp_path / "result.parquet").column("mean").to_numpy()
    assert np.allclose(mean, online["mean"], rtol=1e-5, atol=1e-5)
