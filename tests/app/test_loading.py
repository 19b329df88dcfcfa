"""A model that `credence.load` reads answers as the service that it comes from."""

import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import credence
from core.exceptions import Invalid, NotParseable
from credence.client import Client
from credence.client.prediction import Prediction
from credence.exceptions import CredenceAPIError
from credence.scoring.model import LoadedModel
from credence.scoring.threads import limited_to
from models.exceptions import CorruptArtifact, InvalidInput
from tests.app.running import Service, class_columns, regression_columns

ROWS = 40
CLOSE = 2e-6  # relative: torch and compiled kernels round otherwise, both in float32
SERVER = ("fastapi", "starlette", "celery", "sqlalchemy", "redis", "uvicorn", "app", "worker")
NUMBERS: list[dict[str, Any]] = [
    {},
    {"samples": 50, "seed": 3, "return_mc_errors": True},
    {"sampler": "moments", "intervals": [0.5, 0.9], "interval_kinds": ["credible"]},
    {"prune": 0.5, "samples": 20, "sampler": "monte_carlo"},
    {"quantiles": [0.1, 0.5], "exceeds": [0.0, 2.5], "density": {"points": 4}},
    {"costs": {"over": 1.0, "under": 4.0, "abstain": 0.5}, "abstain_above": 0.3},
    {"explain": True, "samples": 20},
    {"samples": 8, "return_draws": True},
    {"samples": 100, "target_mc_error": 0.05, "sampler": "monte_carlo"},
]
CLASSES: list[dict[str, Any]] = [
    {"set_level": 0.8, "costs": {"matrix": [[0, 1, 2], [1, 0, 1], [2, 1, 0]], "abstain": 0.2}},
    {"samples": 30, "prune": 0.5, "return_mc_errors": True},
]


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def rows() -> dict[str, list[Any]]:
    """With missing values, levels that training did not have, and rows unlike training's."""
    columns = {n: v[:ROWS] for n, v in regression_columns().items() if n != "price"}
    return columns | {
        "wood": [*columns["wood"][:-1], "teak"],
        "size": [900.0, *columns["size"][1:]],
    }


def check_same(found: Prediction, served: Prediction) -> None:
    assert found.table.column_names == served.table.column_names
    for name in found.table.column_names:
        ours, theirs = found.table.to_pylist(name), served.table.to_pylist(name)
        if isinstance(ours[0], float | list) and name != "reasons":
            ours, theirs = (np.array(v, dtype=float) for v in (ours, theirs))
            atol = CLOSE * max(1.0, _size(served, name))
            np.testing.assert_allclose(ours, theirs, rtol=CLOSE, atol=atol, err_msg=name)
        else:
            assert ours == theirs, name
    told = [name for name in served.table.metadata if name not in ("timings_ms", "id")]
    assert {n: found.table.metadata[n] for n in told} == {n: served.table.metadata[n] for n in told}


def _size(prediction: Prediction, name: str) -> float:
    """Of the largest contribution: each is the difference of predictions, which are rounded."""
    kind, found, _ = name.partition("contribution_")
    if not found:
        return 0.0
    columns = [n for n in prediction.table.column_names if n.startswith(kind + found)]
    return max(abs(value) for n in columns for value in prediction.table.to_pylist(n))


@pytest.mark.parametrize("options", NUMBERS, ids=json.dumps)
def test_numbers_are_those_of_the_service(
    service: Service, model: LoadedModel, options: dict[str, Any]
) -> None:
    with Client(service.url) as client:
        served = client.predict("price", rows(), version=1, **options)
    found = model.predict(rows(), **options)
    check_same(found, served)
    assert (found.model, found.version) == ("price", 1)


@pytest.mark.parametrize("options", CLASSES, ids=json.dumps)
def test_classes_are_those_of_the_service(service: Service, options: dict[str, Any]) -> None:
    columns = {name: np.array(values) for name, values in class_columns(ROWS).items()}
    del columns["tree"]
    tree = credence.load(f"{service.url}/models/tree")
    with Client(service.url) as client:
        served = client.predict("tree", columns, **options)
    found = tree.predict(columns, **options)
    if "set_level" in options:
        assert found.sets(0.8) == served.sets(0.8)
        assert found.sets(0.8, "conformal") == served.sets(0.8, "conformal")
        assert found.decisions.action.tolist() == served.decisions.action.tolist()
    else:
        check_same(found, served)
    np.testing.assert_allclose(found.probabilities, served.probabilities, atol=CLOSE)
    assert found.classes == served.classes


def test_forecasts_and_texts_are_those_of_the_service(cards: Service) -> None:
    quarters = (np.datetime64("2005-01", "M") + 3 * np.arange(40)).astype(str).tolist()
    history = {"quarter": quarters, "sales": np.linspace(50, 90, 40).tolist()}
    options = {"samples": 20, "horizon": 5, "exceeds": [80.0], "totals": {}}
    with Client(cards.url) as client:
        served = client.predict("sales", history, **options)
    sales = credence.load("models:/sales", url=cards.url)
    check_same(sales.predict(history, **options), served)
    with pytest.raises(Invalid, match="needs all rows at once: use `predict`"):
        sales.schema()
    lines = credence.load("models:/lines", url=cards.url)
    texts = ["a b c", ""]
    body = {"model": "lines", "inputs": texts, "samples": 5}
    wanted = cards.post("/predict", body).json()
    found = lines.document(texts, samples=5)
    assert found["next_tokens"][0][0]["token"] == wanted["next_tokens"][0][0]["token"]
    np.testing.assert_allclose(found["log_likelihood"], wanted["log_likelihood"], rtol=1e-5)
    assert set(wanted) - set(found) == {"timings_ms"}
    with pytest.raises(Invalid, match="use `document`"):
        lines.predict(texts)


def test_the_document_is_that_of_the_service(service: Service, model: LoadedModel) -> None:
    body = {"model": "price", "version": 1, "inputs": rows(), "samples": 10, "seed": 1}
    wanted = service.post("/predict", body).json()
    found = model.document(rows(), samples=10, seed=1)
    np.testing.assert_allclose(found["mean"], wanted["mean"], rtol=CLOSE)
    assert set(wanted) - set(found) == {"timings_ms"}
    assert found["reasons"] == wanted["reasons"]


def test_rows_have_many_forms_and_texts_are_read_as_in_training(model: LoadedModel) -> None:
    records = [dict(zip(rows(), row, strict=True)) for row in zip(*rows().values(), strict=True)]
    frame = pd.DataFrame(rows())
    wanted = model.predict(rows(), samples=5).mean
    forms = [
        records,
        frame,
        pl.DataFrame(rows()),
        pa.table(rows()),
        pa.table(rows()).to_batches()[0],
    ]
    for form in forms:
        np.testing.assert_array_equal(model.predict(form, samples=5).mean, wanted)
    again = model.predict(frame.set_index(frame.index + 100), samples=5).to_frame()
    assert isinstance(again, pd.DataFrame)
    assert again.index[0] == 100
    extra = pa.table({**rows(), "more": list(range(ROWS))})
    np.testing.assert_array_equal(model.predict(extra, samples=5).mean, wanted)
    days = pa.table(rows()).set_column(
        3, "day", pa.array([day[:10] for day in rows()["day"]]).cast(pa.date32())
    )
    np.testing.assert_array_equal(model.predict(days, samples=5).mean, wanted)


def test_any_part_of_the_rows_has_the_answers_of_the_whole(model: LoadedModel) -> None:
    table = pa.table(rows())
    whole = model.predict_table(table, samples=30, quantiles=[0.2], seed=9)
    for size in (1, 7, 39):
        parts = [table.slice(start, size) for start in range(0, ROWS, size)]
        joined = pa.concat_tables(model.predict_batches(parts, samples=30, quantiles=[0.2], seed=9))
        assert joined.schema == whole.schema
        for name in ("mean", "lower_0.9", "quantile_0.2", "epistemic_variance"):
            # A quantile may be near 0: rounding is that of the target's scale, which is 1.
            np.testing.assert_allclose(
                joined[name], whole[name], rtol=1e-5, atol=1e-6, err_msg=name
            )
        assert joined["reasons"].to_pylist() == whole["reasons"].to_pylist()


@pytest.mark.parametrize("options", [o for o in NUMBERS if "return_draws" not in o], ids=json.dumps)
def test_the_schema_is_known_before_the_rows(model: LoadedModel, options: dict[str, Any]) -> None:
    if "target_mc_error" in options:
        with pytest.raises(Invalid, match="need all rows at once"):
            model.schema(**options)
    else:
        found = model.predict_table(pa.table(rows()), **options).schema
        assert model.schema(**options) == found.remove_metadata()


@pytest.mark.process
def test_a_copy_in_another_process_reads_the_files_and_takes_one_thread(
    model: LoadedModel, tmp_path: Path, archive: Path
) -> None:
    assert len(pickle.dumps(model)) < 2000
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        threads, again, mean = pool.submit(_in_process, model, rows()).result()
    assert threads == 1
    assert again, "the files were read twice in a process"
    np.testing.assert_allclose(mean, model.predict(rows(), samples=10).mean, rtol=1e-5)
    moved = tmp_path / "moved.tar"
    moved.write_bytes(archive.read_bytes())
    packed = pickle.dumps(credence.load(moved))
    moved.unlink()
    with pytest.raises(FileNotFoundError, match="where all workers see it, or load models:/"):
        pickle.loads(packed)


def _in_process(model: LoadedModel, columns: dict[str, Any]) -> tuple[int | None, bool, Any]:
    other = pickle.loads(pickle.dumps(model))
    return model.threads, other.model is model.model, model.predict(columns, samples=10).mean


def test_another_machine_downloads_the_version(service: Service, tmp_path: Path) -> None:
    model = credence.load("models:/price@champion", url=service.url)
    assert model.version == 1
    packed = pickle.dumps(model)
    model.source.path.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path))
        copy = pickle.loads(packed)
    assert copy.source.digest == model.source.digest
    assert list(tmp_path.rglob("price-1.tar"))
    with pytest.raises(CredenceAPIError, match="there is no version"):
        credence.load("models:/price/7", url=service.url)


def test_changed_and_foreign_files_are_refused(archive: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.tar"
    data = bytearray(archive.read_bytes())
    at = data.index(b"prune-0.safetensors") + 512 * 8
    data[at] ^= 1
    damaged.write_bytes(data)
    with pytest.raises(CorruptArtifact, match="does not match its SHA-256 sum"):
        credence.load(damaged)
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(NotParseable, match="no tar archive"):
        credence.load(str(tmp_path / "rows.csv"))
    with pytest.raises(FileNotFoundError, match="give a path of an archive or a folder, models:/"):
        credence.load(tmp_path / "none.tar")
    with pytest.raises(ValueError, match="names no model: give"):
        credence.load("https://example.com/else")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "/samples: must be greater than or equal to 1"),
        ({"sample": 5}, "/sample: unknown field"),
        ({"intervals": [1.5]}, "/intervals/0: "),
        ({"prune": 0.7}, "no variant with prune 0.7; stored are 0, 0.5"),
        ({"set_level": 0.9}, "classif"),
        ({"store": True}, "/store: unknown field"),
        ({"exceeds": [float("nan")]}, "/exceeds/0"),
    ],
    ids=str,
)
def test_wrong_options_are_named(model: LoadedModel, options: dict[str, Any], message: str) -> None:
    with pytest.raises((Invalid, InvalidInput)) as raised:
        model.predict(rows(), **options)
    assert message in (str(raised.value) + getattr(raised.value, "path", ""))


def test_wrong_rows_are_named(model: LoadedModel) -> None:
    table = pa.table(rows())
    with pytest.raises(Invalid, match="/inputs/wood: required"):
        model.predict(table.drop_columns(["wood"]))
    with pytest.raises(Invalid, match="there are no rows"):
        model.predict(table.slice(0, 0))
    with pytest.raises(Invalid, match="NaN, infinite or outside float32"):
        model.predict(table.set_column(0, "size", pa.array([float("nan")] * ROWS)))


@pytest.mark.parametrize("path", ["new.csv", Path("new.csv")])
def test_a_file_is_to_be_read_first(model: LoadedModel, path: str | Path) -> None:
    with pytest.raises(TypeError, match=r"reads no files, such as 'new\.csv': read it with pandas"):
        model.predict(path)


def test_threads_are_those_asked_for_only_while_computing() -> None:
    import torch

    before = torch.get_num_threads()
    with limited_to(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_it_says_what_it_is(service: Service, model: LoadedModel) -> None:
    about = service.http.get("/models/price/versions/1").json()
    found = model.describe()
    for name in (
        "model",
        "version",
        "task",
        "target",
        "metrics",
        "variants",
        "notes",
        "num_weights",
    ):
        assert found[name] == about[name], name
    assert "price version 1: regression of 'price' from size, wood, wet, day" in repr(model)
    assert model.features == ["size", "wood", "wet", "day"]
    assert model.card["rows"]


def test_loading_imports_nothing_of_the_server(archive: Path) -> None:
    code = f"""
import sys, json, credence
model = credence.load({str(archive)!r})
model.predict([{{"size": 1.0, "wood": "oak", "wet": True, "day": "2026-01-03T00:00:00Z"}}])
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=True
    )
    imported = set(json.loads(done.stdout.splitlines()[-1]))
    assert not imported & set(SERVER)
    assert "models" in imported
