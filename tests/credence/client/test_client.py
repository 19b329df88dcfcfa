"""The client's calls against a real service, and what it makes of other answers."""

from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from credence.client import Client
from credence.commands.following import follow
from credence.exceptions import CredenceAPIError, ServiceUnreachable
from credence.types import Version
from tests.credence.invoking import NOBODY

pytestmark = pytest.mark.stack


def test_a_refusal_carries_the_problem_document(client: Client) -> None:
    request = {"model": "small", "dataset": "ds_none", "target": "y", "network": {"hidden": [0]}}
    with pytest.raises(CredenceAPIError) as caught:
        client.submit_train(request)
    error = caught.value
    assert error.status == 422
    assert error.title
    assert error.request_id
    assert any(field.path.startswith("/network/hidden") for field in error.errors)
    assert "/network/hidden" in str(error)


def test_a_name_cannot_climb_out_of_its_place(client: Client, version: Version) -> None:
    with pytest.raises(CredenceAPIError) as caught:
        client.delete_version("small", "..")
    assert caught.value.status in (404, 422)
    assert client.version("small", 1)["version"] == 1


def test_lists_go_over_all_pages(client: Client, version: Version) -> None:
    ids = [job["id"] for job in client.jobs(model="small")]
    assert version["job"] in ids
    assert len(ids) == len(set(ids))
    with Client(NOBODY, retries=0) as nobody, pytest.raises(ServiceUnreachable):
        list(nobody.jobs())


def test_what_is_said_about_a_file_and_its_columns_is_kept(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "said.csv"
    path.write_text("id,x,y\n" + "".join(f"{i},{i * i % 7},{i % 5}\n" for i in range(30)))
    said = client.upload(path, delimiter=",")
    changed = client.fix_columns(said["id"], [{"name": "id", "use": False}], name="without id")
    assert changed["id"] != said["id"]
    assert changed["name"] == "without id"
    assert [column["use"] for column in changed["columns"]] == [False, True, True]
    headless = client.fix_columns(said["id"], header=False)
    assert (said["rows"], headless["rows"]) == (30, 31)


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
