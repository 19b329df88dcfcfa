"""`credence predict --to`: files into a folder of Parquet files, however often it is killed."""

import json
import signal
import subprocess
import sys
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
from core.destinations.parquet import MANIFEST, SUCCESS
from core.exceptions import Conflict
from credence.bulk.places import Format
from credence.bulk.runners import local
from credence.bulk.scoring import predict_files
from credence.scoring.model import LoadedModel
from tests.app.running import regression_columns
from tests.core.s3 import running_moto
from tests.credence.running import CREDENCE, environment

FILES, ROWS = 4, 300
KILLED_AT_THE_THIRD_PART = """
import os, runpy, signal, sys
from pathlib import Path
from credence.bulk.scoring import Run

predict = Run.predict

def predict_or_die(*arguments):
    folder = Path(sys.argv[sys.argv.index("--to") + 1])
    if len(list(folder.glob("part-*"))) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return predict(*arguments)

Run.predict = predict_or_die
sys.argv = sys.argv[1:]
runpy.run_module("credence", run_name="__main__")
"""
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


@pytest.mark.stack
def test_a_killed_run_goes_on_and_counts_no_row_twice(
    archive: Path, model: LoadedModel, table: pa.Table, source: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "predicted"
    options = ["--samples", 10, "--seed", 2, "--interval", 0.8, "--keep", "key"]
    run = command(archive, f"{source}/*.parquet", "--to", folder, *options)
    killing = [sys.executable, "-c", KILLED_AT_THE_THIRD_PART, *run[2:]]
    killed = subprocess.run(killing, env=environment(), check=False)
    assert killed.returncode == -signal.SIGKILL
    there = {path: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    assert len(there) == 2
    assert not (folder / SUCCESS).exists()
    (folder / ".part-00003.parquet.left").write_bytes(b"half")
    subprocess.run(run, env=environment(), capture_output=True, check=True)
    check(read(folder), model, table)
    assert {path: path.stat().st_mtime_ns for path in there} == there
    assert not list(folder.glob(".part-*"))


def test_a_folder_of_others_is_refused(model: LoadedModel, source: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(Conflict, match=r"has other files \(mine.txt, …\)"):
        predict_files(model, str(source), tmp_path, {}, runner=local)
    folder = tmp_path / "new"
    predict_files(model, str(source / "0.parquet"), folder, {}, runner=local)
    for other, options in (("1.parquet", {}), ("0.parquet", {"quantiles": [0.5]})):
        with pytest.raises(Conflict, match="give an empty folder"):
            predict_files(model, str(source / other), folder, options, runner=local)
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["model"] == {"name": "price", "version": 1, "digest": model.source.digest}


@pytest.mark.stack
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
        assert predict("s3://lake/rows2/*/?.parquet", "s3://lake/plain") == table.num_rows
        folder = BucketFolder("lake", "plain", Keys(endpoint=server.url))
        assert len([name for name in folder.names() if name.startswith("part-")]) == 3
        with pytest.raises(FileNotFoundError):
            predict("s3://lake/none", "s3://lake/to")
