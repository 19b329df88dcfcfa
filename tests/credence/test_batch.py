"""A whole data set through the client: queued, predicted by the worker, downloaded."""

from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from credence.client import Client
from credence.commands.following import follow
from credence.exceptions import CredenceAPIError
from credence.types import Version


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


def test_a_job_without_a_result_leaves_no_file(
    client: Client, version: Version, tmp_path: Path
) -> None:
    with pytest.raises(CredenceAPIError) as caught:
        client.download_result(version["job"], tmp_path / "result.parquet")
    assert caught.value.status == 404
    assert not list(tmp_path.iterdir())
