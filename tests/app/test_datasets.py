"""/datasets: files in, profiles and rows out."""

import io
from datetime import datetime

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.conftest import MakeService
from tests.app.running import answered, refused_paths

CSV = b"x,city,ok\n1.5,Rome,true\n,Oslo,false\n-2,Rome,true\n"


@pytest.fixture
def http(make_service: MakeService) -> httpx.Client:
    return make_service().http


def upload(
    http: httpx.Client, body: bytes, media_type: str = "text/csv", **params: str
) -> httpx.Response:
    named = {"name": "cities"} | params
    return http.post("/datasets", params=named, content=body, headers={"Content-Type": media_type})


def test_an_upload_has_a_profile_and_is_kept_once(
    http: httpx.Client,
) -> None:
    first = answered(upload(http, CSV), 201)
    dataset = first.json()
    assert first.headers["location"] == f"/datasets/{dataset['id']}"
    assert set(dataset) == {
        "id", "name", "format", "rows", "columns", "num_columns", "bytes", "sha256",
        "created_at", "reading", "findings", "source",
    }  # fmt: skip
    assert (dataset["name"], dataset["format"], dataset["rows"]) == ("cities", "csv", 3)
    x, city, ok = dataset["columns"]
    assert x == {
        "name": "x", "type": "number", "missing": 1,
        "min": -2.0, "max": 1.5, "mean": -0.25, "std": 1.75,
        "use": True, "reading": {"format": None, "missing": []},
    }  # fmt: skip
    assert (city["type"], city["levels"]) == ("category", ["Rome", "Oslo"])
    assert ok["type"] == "boolean"
    assert dataset["created_at"].endswith("Z")
    assert datetime.fromisoformat(dataset["created_at"]).tzinfo is not None

    again = answered(upload(http, CSV))
    assert again.json() == dataset
    assert http.get(f"/datasets/{dataset['id']}").json() == dataset


def test_every_format_of_the_contract_is_taken(http: httpx.Client) -> None:
    table = pa.table({"a": [1.0, 2.0], "b": ["u", "v"]})
    parquet, arrow, npz = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet)
    with pa.ipc.new_stream(arrow, table.schema) as writer:
        writer.write_table(table)
    np.savez(npz, images=np.zeros((3, 4, 5)), label=np.arange(3))
    files = {
        "application/vnd.apache.parquet": (parquet.getvalue(), 2),
        "application/vnd.apache.arrow.stream": (arrow.getvalue(), 2),
        "application/x-npz": (npz.getvalue(), 3),
        "text/plain; charset=utf-8": (b"a line\nanother line\n", 2),
    }
    for media_type, (body, rows) in files.items():
        answer = answered(upload(http, body, media_type), 201)
        assert answer.json()["rows"] == rows
    images = upload(http, npz.getvalue(), "application/x-npz").json()["columns"][0]
    assert images["shape"] == [4, 5]


def test_rows_are_records_with_null_for_missing(http: httpx.Client) -> None:
    dataset = upload(http, CSV).json()
    answer = http.get(f"/datasets/{dataset['id']}/rows", params={"limit": 2})
    first = answer.json()
    assert first["data"] == [
        {"x": 1.5, "city": "Rome", "ok": True},
        {"x": None, "city": "Oslo", "ok": False},
    ]
    rest = {"limit": 1000, "cursor": first["next_cursor"]}
    answer = http.get(f"/datasets/{dataset['id']}/rows", params=rest)
    assert len(answer.json()["data"]) == dataset["rows"] - 2
    assert answer.json()["next_cursor"] is None
    assert http.get(f"/datasets/{dataset['id']}/rows?limit=0").status_code == 422


def test_a_data_set_in_use_is_not_deleted(http: httpx.Client) -> None:
    body = b"x,y\n" + b"".join(f"{i},{i * 2}\n".encode() for i in range(20))
    dataset = upload(http, body).json()["id"]
    job = http.post("/train", json={"model": "m", "dataset": dataset, "target": "y"}).json()
    refused = answered(http.delete(f"/datasets/{dataset}"), 409)
    assert job["id"] in refused.json()["detail"]
    http.post(f"/jobs/{job['id']}/cancel")
    assert http.delete(f"/datasets/{dataset}").status_code == 204
    for method in ("GET", "DELETE"):
        assert http.request(method, f"/datasets/{dataset}").status_code == 404


def test_files_that_are_wrong_are_refused(http: httpx.Client) -> None:
    assert upload(http, b"not parquet", "application/vnd.apache.parquet").status_code == 400
    assert upload(http, b"").status_code in (400, 422)
    assert upload(http, CSV, "application/x-pickle").status_code == 415
    assert upload(http, b"%PDF-1.7 ...", "application/octet-stream").status_code == 415
    assert http.post("/datasets?name=a", content=CSV).status_code == 415
    for name in ("", "a\x00b", "x" * 257):
        assert refused_paths(upload(http, CSV, name=name))[0] == "name"
    assert http.post("/datasets", content=CSV, headers={"Content-Type": "text/csv"}).json()[
        "errors"
    ] == [{"path": "name", "message": "required"}]


def test_columns_and_file_are_read_otherwise_without_a_new_upload(http: httpx.Client) -> None:
    before = upload(http, CSV, name="otherwise").json()
    url = f"/datasets/{before['id']}/columns"
    body = {"columns": [{"name": "city", "use": False}], "options": {"comment": "#"}}
    changed = answered(http.post(url, json=body), 201)
    dataset = changed.json()
    assert changed.headers["location"] == f"/datasets/{dataset['id']}"
    assert dataset["id"] != before["id"]
    assert dataset["sha256"] == before["sha256"]
    assert [column["use"] for column in dataset["columns"]] == [True, False, True]
    assert http.post(url, json=body).status_code == 200
    assert http.post(url, json={"options": {"comment": "#"}}).status_code == 201


def test_changes_that_are_wrong_are_refused(http: httpx.Client) -> None:
    url = f"/datasets/{upload(http, CSV, name='wrong').json()['id']}/columns"
    for body, path in (
        ({}, ""),
        ({"columns": []}, ""),
        ({"options": {"decimal": "·"}}, "/options/decimal"),
        ({"options": {"delimeter": ";"}}, "/options/delimeter"),
        ({"columns": [{"name": "town", "use": False}]}, "/columns/0/name"),
        ({"columns": [{"name": "x", "type": "money"}]}, "/columns/0/type"),
        ({"columns": [{"name": "city", "levels": {"Rom": "Rome"}}]}, "/columns/0/levels/Rom"),
        ({"columns": [{"name": "x", "levels": {"1.5": "2"}}]}, "/columns/0/levels"),
    ):
        assert refused_paths(http.post(url, json=body)) == [path]


def test_findings_on_a_target_are_added_on_request(http: httpx.Client) -> None:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 200))
    rows = "\n".join(f"{a},{b},{2 * a}" for a, b in zip(x, z, strict=True))
    made = upload(http, f"x,z,price\n{rows}\n".encode()).json()
    assert made["findings"] == []
    answer = http.get(f"/datasets/{made['id']}", params={"target": "price"})
    (finding,) = answer.json()["findings"]
    assert (finding["code"], finding["column"], finding["severity"]) == ("leak", "x", "warning")
    assert finding["fix"] == {"columns": [{"name": "x", "use": False}]}
    wrong = http.get(f"/datasets/{made['id']}", params={"target": "prize"})
    assert (wrong.status_code, wrong.json()["errors"][0]["path"]) == (422, "/target")
