"""Data sets from upload to arrays: kept once, published whole, deleted when nobody needs them."""

import threading
from pathlib import Path
from typing import Any

import pytest

from core.database.database import Database
from core.datasets.dataset import Dataset
from core.datasets.datasets import Datasets
from core.exceptions import (
    Invalid,
    NotFound,
    NotParseable,
    TooLarge,
    Unavailable,
    UnsupportedFormat,
)
from core.storage import ArtifactStore
from core.storage.orphans import Orphans

CSV = "x,city,when,ok\n1.5,Oslo,2020-01-02,true\n,Rome,2020-01-03,false\n2.5,,,\n"


@pytest.fixture
def upload(tmp_path: Path) -> Path:
    path = tmp_path / "upload"
    path.write_text(CSV)
    return path


@pytest.fixture
def added(datasets: Datasets, upload: Path) -> Dataset:
    dataset, created = datasets.add("people", "text/csv; charset=utf-8", upload)
    assert created
    return dataset


def files(store: ArtifactStore) -> list[str]:
    return list(store.children("datasets"))


def test_rows_of_a_series_are_found_by_its_name(datasets: Datasets) -> None:
    columns = {"shop": [7, 12, 7, None, 7, 12], "x": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]}
    dataset, _ = datasets.add_columns("shops", columns)
    assert datasets.distinct(dataset.id, "shop") == ["12", "7"]

    def found(value: str | None, limit: int = 5) -> list[float]:
        rows = datasets.newest_of(dataset.id, "shop", value, limit, ["x"])
        assert all(list(row) == ["x"] for row in rows)
        return [row["x"] for row in rows]

    assert found("7") == [0, 2, 4]
    assert found("7", limit=2) == [2, 4]
    assert found(None) == [1, 5]
    assert found("8") == []


def test_same_bytes_are_kept_once(datasets: Datasets, upload: Path, store: ArtifactStore) -> None:
    start = threading.Barrier(4)
    results: list[tuple[Dataset, bool]] = []

    def add() -> None:
        start.wait()
        results.append(datasets.add("people", "text/csv", upload))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({dataset.id for dataset, _ in results}) == 1
    assert sorted(created for _, created in results) == [False, False, False, True]
    assert len(files(store)) == 2


def test_inline_columns_are_a_data_set(datasets: Datasets) -> None:
    columns: dict[str, list[Any]] = {"x": [1, None], "image": [[[1, 2]], [[3, 4]]]}
    dataset, created = datasets.add_columns("inline", columns)
    assert created
    assert (dataset.format, dataset.rows) == ("json", 2)
    assert datasets.rows(dataset.id, 1) == [{"x": 1, "image": [[1, 2]]}]
    assert datasets.columns(dataset.id, ["image"])["image"].shape == (2, 1, 2)
    assert datasets.columns(dataset.id, rows=slice(1, 2))["image"].tolist() == [[[3, 4]]]
    assert datasets.add_columns("again", columns) == (dataset, False)
    with pytest.raises(Invalid):  # NaN is not taken for null
        datasets.add_columns("again", {**columns, "x": [1, float("nan")]})
    for value in (2**70, 10**400, "\ud800"):
        with pytest.raises(Invalid):
            datasets.add_columns("again", {"x": [value]})


def test_refusals_leave_nothing(datasets: Datasets, tmp_path: Path, store: ArtifactStore) -> None:
    path = tmp_path / "bad"
    path.write_text("a,b\n1\n")
    with pytest.raises(NotParseable):
        datasets.add("bad", "text/csv", path)
    with pytest.raises(UnsupportedFormat):
        datasets.add("bad", "application/pickle", path)
    with pytest.raises(Invalid) as refused:
        datasets.add("a\nb", "text/plain", path)
    assert refused.value.errors[0][0] == "name"
    assert datasets.list().data == []
    assert files(store) == []


def test_a_file_whose_row_may_have_been_committed_is_left_to_the_sweep(
    datasets: Datasets,
    database: Database,
    upload: Path,
    store: ArtifactStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that is lost on COMMIT tells nothing: only what has a row must keep its file."""

    def lost(*_: object) -> None:
        raise Unavailable("the connection to the database was lost")

    with monkeypatch.context() as patched:
        patched.setattr("core.datasets.datasets.check_bytes", lost)
        with pytest.raises(Unavailable):
            datasets.add("people", "text/csv", upload)
    orphans = Orphans(database, store).find_rowless()
    assert len(orphans) == 2, "the table and the upload"
    assert all(map(store.exists, orphans))
    datasets.add("people", "text/csv", upload)
    assert Orphans(database, store).find_rowless() == orphans


def test_a_data_set_above_the_limit_is_refused(
    database: Database, store: ArtifactStore, upload: Path
) -> None:
    with pytest.raises(TooLarge, match="CREDENCE_MAX_DATASET_BYTES is 20"):
        Datasets(database, store, max_bytes=20).add("people", "text/csv", upload)
    with pytest.raises(TooLarge):
        Datasets(database, store, max_bytes=20).add_columns("x", {"x": [1.5] * 9})


def test_a_deleted_data_set_is_gone(
    datasets: Datasets, added: Dataset, upload: Path, store: ArtifactStore
) -> None:
    datasets.delete(added.id)
    assert files(store) == []
    for ask in (datasets.get, datasets.rows, datasets.columns, datasets.delete):
        with pytest.raises(NotFound, match="there is no dataset"):
            ask(added.id)
    again, created = datasets.add("people", "text/csv", upload)
    assert created
    assert again.id != added.id


def test_text_with_every_character_survives(datasets: Datasets) -> None:
    """A NUL and a quote in a level: in the profile's JSON they must pass through PostgreSQL."""
    words = ["a\x00b", 'c"d', "e\\u0000f", "🙂", "\u2028"]
    dataset, _ = datasets.add_columns("odd", {"s": words})
    assert datasets.columns(dataset.id)["s"].tolist() == words
    assert set(datasets.get(dataset.id).columns[0].levels or ()) == set(words)
