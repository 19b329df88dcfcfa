"""`credence predict --to`: files into a folder of Parquet files, however often it is killed."""

import json
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import boto3
import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from core.destinations.bucket import BucketFolder, Keys
from core.destinations.overlap import ahead
from core.destinations.parquet import MANIFEST, SUCCESS
from core.exceptions import Conflict, Invalid, UnsupportedFormat
from credence.bulk.files import find_files
from credence.bulk.parts import plan
from credence.bulk.places import Format
from credence.bulk.runners import local
from credence.bulk.scoring import predict_files
from credence.scoring.model import LoadedModel
from tests.app.running import regression_columns
from tests.core.s3 import running_moto
from tests.credence.running import CREDENCE, environment

FILES, ROWS = 4, 300
OPTIONS: dict[str, Any] = {"samples": 10, "seed": 2, "intervals": [0.8]}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    columns = regression_columns(FILES * ROWS)
    return pa.table({"key": list(range(FILES * ROWS)), **columns}).drop_columns(["price"])


@pytest.fixture(scope="module")
def source(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    for number in range(FILES):
        part = table.slice(number * ROWS, ROWS)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=100)
    return folder


def read(folder: Path) -> pa.Table:
    return pa.concat_tables(pq.read_table(path) for path in sorted(folder.glob("part-*.parquet")))


def command(*arguments: object) -> list[str]:
    return [*CREDENCE, "predict", *map(str, arguments)]


def check(found: pa.Table, model: LoadedModel, table: pa.Table) -> None:
    """Whether every row is there once, with its own answer."""
    assert found["key"].to_pylist() == table["key"].to_pylist()
    wanted = model.predict_table(table, **OPTIONS)
    for name in ("mean", "lower_0.8", "conformal_upper_0.8", "epistemic_variance"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, err_msg=name)


def test_every_row_is_predicted_once(
    model: LoadedModel, table: pa.Table, source: Path, tmp_path: Path
) -> None:
    seen: list[int] = []
    rows = predict_files(
        model, str(source), tmp_path, OPTIONS, runner=local, keep=["key"], show=seen.append
    )
    assert rows == sum(seen) == table.num_rows
    check(read(tmp_path), model, table)
    success = json.loads((tmp_path / SUCCESS).read_text())
    assert success["rows"] == table.num_rows
    assert list(success["parts"].values()) == [ROWS] * FILES
    assert pq.read_table(tmp_path).num_rows == table.num_rows  # readers leave out _ and . files


@pytest.mark.process
def test_a_killed_run_goes_on_and_counts_no_row_twice(
    archive: Path, model: LoadedModel, table: pa.Table, source: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "predicted"
    options = ["--samples", 10, "--seed", 2, "--interval", 0.8, "--keep", "key"]
    run = command(archive, f"{source}/*.parquet", "--to", folder, *options)
    slow = "import credence.bulk.scoring as s, time, runpy, sys; f = s.Run.predict\n"
    slow += "s.Run.predict = lambda *a: (f(*a), time.sleep(1))[0]\n"  # a chance to kill it
    slow += "sys.argv = sys.argv[1:]; runpy.run_module('credence', run_name='__main__')"
    killed = subprocess.Popen([sys.executable, "-c", slow, *run[2:]], env=environment())
    deadline = time.monotonic() + 100
    while len(list(folder.glob("part-*"))) < 2:
        assert killed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    there = {path: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    assert 2 <= len(there) < FILES
    assert not (folder / SUCCESS).exists()
    (folder / ".part-00003.parquet.left").write_bytes(b"half")
    done = subprocess.run(run, env=environment(), capture_output=True, text=True, check=True)
    assert f"{table.num_rows} rows of price version 1" in done.stderr
    check(read(folder), model, table)
    assert {path: path.stat().st_mtime_ns for path in there} == there
    assert not list(folder.glob(".part-*"))
    again = subprocess.run(run, env=environment(), capture_output=True, text=True, check=True)
    assert f"{table.num_rows} rows" in again.stderr
    other = subprocess.run(
        [*run, "--quantile", "0.5"], env=environment(), capture_output=True, text=True, check=False
    )
    assert other.returncode == 1
    assert "holds predictions with other options: give an empty folder" in other.stderr


def test_a_folder_of_something_else_is_refused(
    model: LoadedModel, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(Conflict, match=r"has other files \(mine.txt, …\)"):
        predict_files(model, str(source), tmp_path, {}, runner=local)
    folder = tmp_path / "new"
    predict_files(model, str(source / "0.parquet"), folder, {}, runner=local)
    with pytest.raises(Conflict, match="with other files: give an empty folder"):
        predict_files(model, str(source / "1.parquet"), folder, {}, runner=local)
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["model"] == {"name": "price", "version": 1, "digest": model.source.digest}


def test_large_files_are_cut_at_row_groups(
    model: LoadedModel, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("credence.bulk.parts.PART_ROWS", 200)
    parts, kept = plan(find_files(str(source / "0.parquet")), model.inputs, ["key"])
    assert [(part.row_groups, part.rows) for part in parts] == [((0, 2), 200), ((2, 3), 100)]
    assert kept.names == ["key"]


def test_csv_is_read_as_in_training(model: LoadedModel, table: pa.Table, tmp_path: Path) -> None:
    pyarrow.csv.write_csv(table, tmp_path / "rows.csv")
    predict_files(
        model, str(tmp_path / "*.csv"), tmp_path / "to", OPTIONS, runner=local, keep=["key"]
    )
    check(read(tmp_path / "to"), model, table)


@pytest.mark.process
@pytest.mark.server
def test_a_lake_in_a_bucket(
    model: LoadedModel, table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Delta table and a pattern are read, and a table and a folder written, by URI alone."""
    with running_moto() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        boto3.client("s3", endpoint_url=server.url).create_bucket(Bucket="lake")
        options = Keys(endpoint=server.url).options()
        uri, place = "s3://lake/predicted", {"storage_options": options}
        for part in (table.slice(0, 500), table.slice(500)):
            deltalake.write_deltalake(
                "s3://lake/rows", part, mode="append", partition_by=["wood", "wet"], **place
            )

        def predict(source: str, to: str, format_: Format = "parquet") -> int:
            arguments: Any = {"runner": local, "keep": ["key"], "format_": format_}
            return predict_files(model, source, to, OPTIONS, **arguments)

        for _ in range(2):
            assert predict("s3://lake/rows", uri, "delta") == table.num_rows
        found = deltalake.DeltaTable(uri, storage_options=options).to_pyarrow_table()
        check(found.sort_by("key"), model, table)

        files = BucketFolder("lake", "rows2/inner", Keys(endpoint=server.url))
        for number in range(3):
            with files.writing(f"{number}.parquet") as file:
                pq.write_table(table.slice(400 * number, 400), file)
        plain = "s3://lake/plain"
        assert predict("s3://lake/rows2/*/?.parquet", plain) == table.num_rows
        assert predict("s3://lake/rows2/inner", plain) == table.num_rows
        place_of = BucketFolder("lake", "plain", Keys(endpoint=server.url))
        parts = sorted(name for name in place_of.names() if name.startswith("part-"))
        assert len(parts) == 3
        with ExitStack() as opened:
            read_back = [pq.read_table(opened.enter_context(place_of.opened(p))) for p in parts]
        check(pa.concat_tables(read_back), model, table)
        with pytest.raises(FileNotFoundError, match="there is no file 's3://lake/none'"):
            predict("s3://lake/none", "s3://lake/to")


def test_tables_that_cannot_be_read_plainly_are_refused(
    model: LoadedModel, table: pa.Table, tmp_path: Path
) -> None:
    rows = tmp_path / "rows"
    deltalake.DeltaTable.create(str(rows), table.schema)
    log = rows / "_delta_log" / "00000000000000000000.json"
    mapped = json.dumps({"configuration": {"delta.columnMapping.mode": "name"}})[1:-1]
    log.write_text(log.read_text().replace('"configuration":{}', mapped))
    with pytest.raises(UnsupportedFormat, match="maps names of columns: use Spark"):
        predict_files(model, str(rows), tmp_path / "to", {}, runner=local)


def test_what_is_wrong_is_said_before_the_work(
    model: LoadedModel, source: Path, tmp_path: Path
) -> None:
    def refused(error: type[Exception], message: str, rows: object = source, **more: Any) -> None:
        with pytest.raises(error, match=message):
            predict_files(
                model, str(rows), tmp_path / "to", more.pop("options", {}), runner=local, **more
            )
        assert not (tmp_path / "to").exists()

    refused(FileNotFoundError, "there is no file", tmp_path / "*.parquet")
    refused(Invalid, "lacks the columns id; it has key, size", keep=["id"])
    refused(Invalid, "/quantiles/0", options={"quantiles": [3.0]})
    refused(Invalid, "need all rows at once", options={"return_draws": True})
    pq.write_table(pa.table({"mean": [1.0]}), tmp_path / "other.parquet")
    refused(Invalid, "a prediction has a column 'mean', too", keep=["mean"])
    refused(Invalid, "lacks the columns size, wood, wet, day", tmp_path / "other.parquet")
    (tmp_path / "rows.txt").write_text("a")
    refused(UnsupportedFormat, "neither .parquet nor .csv", tmp_path / "rows.txt")


def test_reading_is_a_few_batches_ahead() -> None:
    taken: list[int] = []

    def numbers() -> Any:
        for number in range(10):
            taken.append(number)
            yield number

    found = []
    for number in ahead(numbers()):
        found.append(number)
        assert len(taken) <= number + 4
    assert found == list(range(10))

    def failing() -> Any:
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(ahead(failing()))


@pytest.mark.process
def test_options_of_the_command_that_do_not_go_together(archive: Path, source: Path) -> None:
    for arguments, message in (
        (["--engine", "ray"], "--engine needs --to FOLDER"),
        (["--to", "x", "--json"], "--json: not with --to"),
        (["--to", "x", "--format", "csv"], "with --to give parquet or delta"),
        (["--format", "delta"], "--format delta needs --to FOLDER"),
        (["--to", "x", "--delimiter", ";"], "CSV files have commas and a header"),
    ):
        run = command(archive, source / "0.parquet", *arguments)
        done = subprocess.run(
            run, env=environment(COLUMNS="200"), capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert message in done.stderr
