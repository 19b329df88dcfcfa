"""Row 11: formulas in files, frames around pages, unknown devices, uploads at a stop."""

import csv
import io
import signal
import socket
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.csv
import pytest

from app.serving.csv_format import write_table
from credence.commands.files.predictions import write_csv
from tests.credence.running import Service, serving
from tests.credence.uploading import begin_upload

HARMFUL = '=HYPERLINK("http://evil.example")'


class Columns:
    """A table of the command line: a column whose name and values spreadsheets would compute."""

    column_names = (HARMFUL, "mean", "label")

    def to_pylist(self, name: str) -> list[Any]:
        rows: dict[str, list[Any]] = {
            HARMFUL: ["+1+1", "-5", "@SUM(A1)", "\t=1", "plain", None],
            "mean": [-1.5, 2.0, -3.0, 4.0, 5.0, 6.0],
            "label": ["-", "+", "=", "a=b", "-1e5", "x"],
        }
        return rows[name]


def test_no_cell_of_the_command_line_is_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(Columns(), 1)  # type: ignore[arg-type]
    lines = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert lines[0] == [f"'{HARMFUL}", "mean", "label"]
    assert [line[0] for line in lines[1:]] == ["'+1+1", "-5", "'@SUM(A1)", "'\t=1", "plain", ""]
    assert [line[1] for line in lines[1:]] == ["-1.5", "2.0", "-3.0", "4.0", "5.0", "6.0"]
    assert [line[2] for line in lines[1:]] == ["'-", "'+", "'=", "a=b", "-1e5", "x"]


def test_no_cell_of_an_answer_is_a_formula() -> None:
    table = pa.table({"label": [HARMFUL, "oak"], "mean": np.array([-1.0, 1.0])})
    lines = list(csv.reader(io.StringIO(write_table(table).decode())))
    assert lines == [["label", "mean"], [f"'{HARMFUL}", "-1.0"], ["oak", "1.0"]]


def test_a_cell_with_a_lone_carriage_return_stays_one_cell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Unquoted it ended the line, and the next began with a formula."""
    names = ["Ann\r=1+1", "Ben\nBo", "Cy"]
    table = pa.table({"name": names, "mean": [1.0, 2.0, 3.0]})

    class Lines(Columns):
        column_names = ("name", "mean", "label")

        def to_pylist(self, name: str) -> list[Any]:
            return names if name == "name" else ["1", "2", "3"]

    write_csv(Lines(), 1)  # type: ignore[arg-type]
    for content in (write_table(table), capsys.readouterr().out.encode()):
        assert content.count(b"\r") == 1
        read = pandas.read_csv(io.BytesIO(content), lineterminator="\n")
        assert read["name"].tolist() == names
        options = pyarrow.csv.ParseOptions(newlines_in_values=True)
        assert pyarrow.csv.read_csv(io.BytesIO(content), parse_options=options).num_rows == 3


@pytest.mark.parametrize("path", ["/docs", "/", "/ui/system"])
def test_no_page_can_be_framed(open_service: Service, path: str) -> None:
    answer = httpx.get(open_service.url + path, timeout=120)
    assert answer.status_code == 200
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert "'unsafe-inline'" not in answer.headers["Content-Security-Policy"].split("style-src")[0]
    assert answer.headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("device", ["cuda", "cuda:7", "tpu", "mars"])
def test_a_device_that_no_worker_has_is_refused(open_service: Service, device: str) -> None:
    table = {"x": list(range(40)), "y": list(range(40))}
    body = {"model": "m", "data": {"columns": table}, "target": "y"}
    answer = httpx.post(
        f"{open_service.url}/train", json={**body, "training": {"device": device}}, timeout=60
    )
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["path"] == "/training/device"
    assert error["message"] == f"no worker has {device!r}; there are auto, cpu"


def test_an_upload_at_a_stop_is_to_come_again(tmp_path: Path) -> None:
    with serving(tmp_path, "api") as service:
        address = httpx.URL(service.url)
        uploads = []
        for number in range(2):
            upload = begin_upload(service.url, f"slow{number}", 100_000)
            upload.send(b"a,b\n1,2\n")
            uploads.append(upload)
        service.process.send_signal(signal.SIGTERM)
        for upload in uploads:
            answer = upload.getresponse()
            assert answer.status == 503
            assert int(answer.headers["Retry-After"]) > 0
            assert b"the service stops" in answer.read()
            upload.close()
        assert service.process.wait(15) == 0
    with pytest.raises(OSError), socket.create_connection((address.host, address.port), 1):
        pass
