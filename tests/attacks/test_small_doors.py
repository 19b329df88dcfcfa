"""Row 11: formulas in files, frames around pages, unknown devices."""

import csv
import io
from typing import Any

import httpx
import pandas
import pyarrow as pa
import pytest

from app.serving.csv_format import write_table
from credence.commands.files.predictions import write_csv
from tests.app.running import answered
from tests.credence.running import Service

HARMFUL = '=HYPERLINK("http://evil.example")'


class Columns:
    """A table of the command line: a column whose name and values spreadsheets would compute."""

    column_names = (HARMFUL, "mean", "label")

    def to_pylist(self, name: str) -> list[Any]:
        rows: dict[str, list[Any]] = {
            HARMFUL: ["+1+1", "-5", "@SUM(A1)", "\t=1", "Ann\r=1+1", None],
            "mean": [-1.5, 2.0, -3.0, 4.0, 5.0, 6.0],
            "label": ["-", "+", "=", "a=b", "-1e5", "x"],
        }
        return rows[name]


def test_no_cell_of_the_command_line_is_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(Columns(), 1)  # type: ignore[arg-type]
    lines = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert lines[0] == [f"'{HARMFUL}", "mean", "label"]
    assert [line[0] for line in lines[1:]] == ["'+1+1", "-5", "'@SUM(A1)", "'\t=1", "Ann\r=1+1", ""]
    assert [line[1] for line in lines[1:]] == ["-1.5", "2.0", "-3.0", "4.0", "5.0", "6.0"]
    assert [line[2] for line in lines[1:]] == ["'-", "'+", "'=", "a=b", "-1e5", "x"]


def test_no_cell_of_an_answer_is_a_formula() -> None:
    """Nor does a lone carriage return end a line, so that the next began with one."""
    table = pa.table({"label": [HARMFUL, "Ann\r=1+1", "Ben\nBo"], "mean": [-1.0, 1.0, 2.0]})
    content = write_table(table)
    read = pandas.read_csv(io.BytesIO(content), lineterminator="\n")
    assert read["label"].tolist() == [f"'{HARMFUL}", "Ann\r=1+1", "Ben\nBo"]
    assert read["mean"].tolist() == [-1.0, 1.0, 2.0]


def test_no_page_can_be_framed(open_service: Service) -> None:
    for path in ("/docs", "/", "/ui/system"):
        answer = httpx.get(open_service.url + path, timeout=120)
        policy = answer.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy
        assert "'unsafe-inline'" not in policy.split("style-src")[0]
        assert answer.headers["X-Frame-Options"] == "DENY"


def test_a_device_that_no_worker_has_is_refused(open_service: Service) -> None:
    table = {"x": list(range(40)), "y": list(range(40))}
    body = {"model": "m", "data": {"columns": table}, "target": "y"}
    for device in ("cuda:7", "mars"):
        wanted = body | {"training": {"device": device}}
        answer = answered(httpx.post(f"{open_service.url}/train", json=wanted, timeout=120), 422)
        assert [error["path"] for error in answer.json()["errors"]] == ["/training/device"]
