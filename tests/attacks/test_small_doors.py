"""Rows 6 and 11: files in the current directory, formulas in files, frames, unknown devices."""

import csv
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pandas
import pyarrow as pa
import pytest

from app.serving.csv_format import write_table
from credence.commands.files.predictions import write_csv
from tests.app.running import answered
from tests.credence.running import Service, environment

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


NAMES = ("torch", "models", "core", "worker", "numpy", "typer", "structlog", "multiprocessing")
COMMANDS = {
    "script": [str(Path(sys.executable).parent / "credence")],
    "module": [sys.executable, "-m", "credence"],
}


def plant(directory: Path) -> None:
    """Modules and packages that leave a file when they are imported.

    A folder `credence`, as a clone makes it, is not the package either.
    """
    (directory / "credence" / "credence").mkdir(parents=True)
    leave = "import pathlib, os\npathlib.Path(os.environ['TRACES'], __name__).touch()\n"
    for name in NAMES:
        (directory / f"{name}.py").write_text(leave)
    (directory / "app").mkdir()
    (directory / "app" / "__init__.py").write_text(leave)


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_torch_in_the_current_directory_is_not_run(tmp_path: Path, command: str) -> None:
    planted, traces = tmp_path / "planted", tmp_path / "traces"
    plant(planted)
    traces.mkdir()
    serve = [*COMMANDS[command], "serve", "--port", "0", "--data-dir", str(tmp_path / "data")]
    settings = {"TRACES": str(traces), "CREDENCE_TRAIN_PROCESSES": "2"}
    with subprocess.Popen(
        serve, cwd=planted, env=environment(**settings), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            assert process.stdout.readline().startswith("ready on ")
        finally:
            process.terminate()
    assert not list(traces.iterdir())
