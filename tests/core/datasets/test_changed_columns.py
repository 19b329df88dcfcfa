"""A data set whose columns are read otherwise: a new one, made from the same stored bytes."""

from pathlib import Path

import pytest

from core.datasets.dataset import Dataset
from core.datasets.datasets import Datasets
from core.datasets.files.options import DatasetOptions
from core.datasets.understanding.fixes import ColumnFix
from core.exceptions import Invalid
from core.storage import ArtifactStore

CSV = "x,city\n1.5,Oslo\n2.5,Rome\n"
LEFT_OUT = ColumnFix(name="city", use=False)


@pytest.fixture
def added(datasets: Datasets, tmp_path: Path) -> Dataset:
    path = tmp_path / "upload"
    path.write_text(CSV)
    return datasets.add("people", "text/csv", path)[0]


def sources(store: ArtifactStore) -> list[str]:
    return [name for name in store.children("datasets") if name.endswith(".source")]


def test_the_new_data_set_has_the_same_bytes(
    datasets: Datasets, added: Dataset, store: ArtifactStore
) -> None:
    changed, created = datasets.change_columns(added.id, [LEFT_OUT])
    assert created
    assert changed.id != added.id
    assert (changed.sha256, changed.bytes, changed.name) == (added.sha256, added.bytes, "people")
    assert [column.use for column in changed.columns] == [True, False]
    assert [column.use for column in datasets.get(added.id).columns] == [True, True]
    assert len(sources(store)) == 1, "the upload is stored once"
    assert datasets.change_columns(added.id, [LEFT_OUT]) == (changed, False)


def test_changes_add_up(datasets: Datasets, added: Dataset) -> None:
    once, _ = datasets.change_columns(added.id, [LEFT_OUT])
    twice, _ = datasets.change_columns(once.id, [ColumnFix(name="x", use=False)])
    assert [column.use for column in twice.columns] == [False, False]
    back, created = datasets.change_columns(twice.id, [ColumnFix(name="x", use=True)])
    assert created, "what was said is a part of what the data set is"
    assert [column.use for column in back.columns] == [True, False]


def test_options_add_up_and_keep_the_changes_of_columns(datasets: Datasets, added: Dataset) -> None:
    changed, _ = datasets.change_columns(added.id, [LEFT_OUT])
    commented, created = datasets.change_columns(
        changed.id, [], options=DatasetOptions(comment="#")
    )
    assert created
    assert [column.use for column in commented.columns] == [True, False]
    skipped, _ = datasets.change_columns(commented.id, [], options=DatasetOptions(skip=0))
    assert datasets.get(skipped.id).given.options == DatasetOptions(comment="#", skip=0)
    again = datasets.change_columns(commented.id, [], options=DatasetOptions(comment="#"))
    assert again == (commented, False)


def test_the_upload_stays_until_its_last_data_set_goes(
    datasets: Datasets, added: Dataset, store: ArtifactStore
) -> None:
    changed, _ = datasets.change_columns(added.id, [LEFT_OUT])
    datasets.delete(added.id)
    assert len(sources(store)) == 1
    again, _ = datasets.change_columns(changed.id, [ColumnFix(name="x", use=False)])
    datasets.delete(changed.id)
    datasets.delete(again.id)
    assert not store.children("datasets")


def test_inline_rows_are_changed_from_their_columns(datasets: Datasets) -> None:
    inline, _ = datasets.add_columns("inline", {"x": [1, 2], "city": ["Oslo", "Rome"]})
    changed, _ = datasets.change_columns(inline.id, [LEFT_OUT])
    assert [column.use for column in changed.columns] == [True, False]
    assert datasets.rows(changed.id) == datasets.rows(inline.id)
    with pytest.raises(Invalid, match="/options"):
        datasets.change_columns(inline.id, [], options=DatasetOptions(header=False))
