"""/datasets: files of every format, packed and sent as something else."""

import gzip
import io
import json

import httpx
import pyarrow as pa
import pytest
from pyarrow import orc

from tests.app.conftest import MakeService
from tests.core.datasets.test_unpacking import zipped
from tests.corpus.workbooks import ods, xlsx

pytestmark = pytest.mark.process  # some readers run in a child

ROWS = [[1.5, "u"], [2.5, "v"], [4.0, "u"]]
SHEETS = {"One": [["a", "b"], *ROWS], "Two": [["c"], [1], [2]]}
RECORDS = [dict(zip("ab", row, strict=True)) for row in ROWS]
FORM = "application/x-www-form-urlencoded"  # of curl --data-binary


@pytest.fixture
def http(make_service: MakeService) -> httpx.Client:
    return make_service().http


def upload(http: httpx.Client, body: bytes, media_type: str, **params: str) -> httpx.Response:
    headers = {"Content-Type": media_type}
    return http.post("/datasets", params={"name": "t"} | params, content=body, headers=headers)


def as_orc() -> bytes:
    buffer = io.BytesIO()
    orc.write_table(pa.table({"a": [r[0] for r in ROWS], "b": [r[1] for r in ROWS]}), buffer)
    return buffer.getvalue()


def test_every_format_is_read_whatever_it_is_sent_as(http: httpx.Client) -> None:
    csv = b"a,b\n1.5,u\n2.5,v\n4.0,u\n"
    files = {
        "excel": xlsx(SHEETS)(),
        "opendocument": ods(SHEETS)(),
        "orc": as_orc(),
        "records": json.dumps(RECORDS).encode(),
        "jsonl": "\n".join(map(json.dumps, RECORDS)).encode(),
        "csv": zipped(("t.csv", gzip.compress(csv))),
    }
    for format_, body in files.items():
        for media_type in ("application/octet-stream", FORM, "text/csv"):
            answer = upload(http, body, media_type)
            assert answer.status_code in (200, 201), answer.text
            dataset = answer.json()
            assert dataset["format"] == format_
            rows = http.get(f"/datasets/{dataset['id']}/rows").json()["data"]
            assert rows == RECORDS
    assert dataset["reading"]["packing"] == "zip, gzip"
    assert dataset["reading"]["member"] == "t.csv"


def test_another_sheet_is_read_without_a_new_upload(http: httpx.Client) -> None:
    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    made = upload(http, zipped(("book.xlsx", xlsx(SHEETS)())), "application/zip").json()
    assert made["reading"]["sheet"] == "One"
    changed = http.post(f"/datasets/{made['id']}/columns", json={"options": {"sheet": "Two"}})
    assert changed.status_code == 201, changed.text
    assert changed.json()["reading"]["sheet"] == "Two"
    assert changed.json()["sha256"] == made["sha256"]
    assert [column["name"] for column in changed.json()["columns"]] == ["c"]
    refused = upload(http, xlsx(SHEETS)(), media_type, sheet="Three")
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert error["path"] == "sheet"
    assert "'One', 'Two'" in error["message"]


def test_what_is_never_read_is_a_415_with_the_way_to_go_on(http: httpx.Client) -> None:
    refused = upload(http, b"%PDF-1.7 ...", "application/octet-stream")
    assert refused.status_code == 415
    assert "credence.Client().upload" in refused.json()["detail"]
