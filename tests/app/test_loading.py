"""A model that `credence.load` reads answers as the service that it comes from."""

import json
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credence
from core.exceptions import Invalid, NotParseable
from credence.client import Client
from credence.client.prediction import Prediction
from credence.scoring.model import LoadedModel
from models.exceptions import CorruptArtifact
from tests.app.running import Service, class_columns, regression_columns

ROWS = 40
CLOSE = 1e-4  # relative: torch and compiled kernels round otherwise, both in float32
NUMBERS: list[dict[str, Any]] = [
    {},
    {"samples": 50, "seed": 3, "return_mc_errors": True},
    {"sampler": "moments", "intervals": [0.5, 0.9], "interval_kinds": ["credible"]},
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


@pytest.mark.stack
def test_a_copy_in_a_process_reads_files(model: LoadedModel, tmp_path: Path, archive: Path) -> None:
    assert len(pickle.dumps(model)) < 2000
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        threads, again, mean = pool.submit(_in_process, model, rows()).result()
    assert threads == 1
    assert again, "the files were read twice in a process"
    np.testing.assert_allclose(mean, model.predict(rows(), samples=10).mean, rtol=1e-4)
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
        assert pickle.loads(packed).source.digest == model.source.digest


def test_changed_and_foreign_files_are_refused(archive: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.tar"
    data = bytearray(archive.read_bytes())
    at = data.index(b"prune-0.safetensors") + 512 * 8
    data[at] ^= 1
    damaged.write_bytes(data)
    with pytest.raises(CorruptArtifact, match="does not match its SHA-256 sum"):
        credence.load(damaged)
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(NotParseable):
        credence.load(str(tmp_path / "rows.csv"))
    with pytest.raises(FileNotFoundError):
        credence.load(tmp_path / "none.tar")
