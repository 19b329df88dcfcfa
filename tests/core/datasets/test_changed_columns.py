"""Other readings of the same bytes, and levels that are read as others."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from core.datasets.columns import tensors
from core.datasets.columns.place import Column
from core.datasets.columns.repeats import repeated_rows
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


def test_a_change_keeps_the_bytes(datasets: Datasets, added: Dataset, store: ArtifactStore) -> None:
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


UNIQUE = DatasetOptions(unique_rows=True)
ALL = DatasetOptions(unique_rows=False)


def columns(table: pa.Table) -> list[Column]:
    return [table.column(name) for name in table.column_names]


def test_repeated_rows_are_those_of_a_search_one_by_one() -> None:
    rng = np.random.default_rng(0)
    rows = 300
    days = [
        datetime(2026, 1, 1 + day, tzinfo=UTC) if day else None for day in rng.integers(0, 3, rows)
    ]
    table = pa.table(
        {
            "number": pa.array([None if x == 0 else x / 2 for x in rng.integers(0, 3, rows)]),
            "word": pa.array(
                [[None, "", "a"][x] for x in rng.integers(0, 3, rows)], "large_string"
            ),
            "flag": pa.array([[None, True, False][x] for x in rng.integers(0, 3, rows)]),
            "day": pa.array(days, pa.timestamp("us", "UTC")),
            "pixels": tensors.from_numpy(rng.integers(0, 2, (rows, 2)).astype(np.float32)),
        }
    )
    seen: set[str] = set()
    expected = []
    for row, values in enumerate(map(str, table.to_pylist())):
        if values in seen:
            expected.append(row)
        seen.add(values)
    assert 50 < len(expected) < 250
    assert repeated_rows(columns(table)).tolist() == expected


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Lines 5 and 6 equal line 2 once “ A ” is A; line 4 differs in what is no feature."""
    path = tmp_path / "rows.csv"
    path.write_text("id,kind,x\n1,A,1.5\n2,B,2.5\n3,A,1.5\n1, A ,1.5\n1,A,1.50\n4,B,\n")
    return path


def test_copies_are_left_out_and_the_first_stays(datasets: Datasets, file: Path) -> None:
    added, _ = datasets.add("rows", "text/csv", file)
    assert (added.rows, added.reading.repeated_rows) == (6, None)
    changed, created = datasets.change_columns(added.id, [], options=UNIQUE)
    assert created
    assert (changed.rows, changed.reading.repeated_rows) == (4, 2)
    assert [row["id"] for row in datasets.rows(changed.id)] == [1, 2, 3, 4]
    (said,) = [one for one in changed.findings if one.code == "duplicate_rows"]
    assert "(lines 5, 6)" in said.message
    assert said.fix == {"options": {"unique_rows": False}}
    assert datasets.change_columns(changed.id, [], options=ALL) == (added, False)
    assert datasets.get(changed.id) == changed
    assert datasets.get(added.id).rows == 6, "the old one is kept"


CITIES = ["Munich", "Muenich", "muenich ", "Berlin", "Berln", "Rome", None]


def merged(**levels: str) -> ColumnFix:
    return ColumnFix(name="city", levels=levels)


@pytest.fixture
def towns(datasets: Datasets, tmp_path: Path) -> Dataset:
    path = tmp_path / "cities.csv"
    path.write_text("city,x\n" + "".join(f"{city or ''},{i}\n" for i, city in enumerate(CITIES)))
    return datasets.add("cities", "text/csv", path)[0]


def cities(datasets: Datasets, dataset: Dataset) -> list[str | None]:
    return [row["city"] for row in datasets.rows(dataset.id)]


def test_a_level_is_read_as_another_in_any_case(datasets: Datasets, towns: Dataset) -> None:
    changed, _ = datasets.change_columns(towns.id, [merged(Muenich="Munich")])
    assert cities(datasets, changed) == ["Munich"] * 3 + ["Berlin", "Berln", "Rome", None]
    assert changed.readings[0].levels == {"Muenich": "Munich"}
    assert datasets.get(changed.id) == changed
    assert cities(datasets, towns)[1] == "Muenich", "the old one is kept"


def test_later_levels_are_added_and_those_before_follow(datasets: Datasets, towns: Dataset) -> None:
    once, _ = datasets.change_columns(towns.id, [merged(Muenich="Munich")])
    twice, _ = datasets.change_columns(once.id, [merged(Munich="Rome", Berln="Berlin")])
    assert cities(datasets, twice) == ["Rome"] * 3 + ["Berlin", "Berlin", "Rome", None]
    expected = {"Muenich": "Rome", "Munich": "Rome", "Berln": "Berlin"}
    assert twice.readings[0].levels == expected
    other, _ = datasets.change_columns(twice.id, [ColumnFix(name="x", use=False)])
    assert other.readings[0].levels == expected, "other changes keep them"


def test_only_a_category_has_levels(datasets: Datasets, towns: Dataset) -> None:
    with pytest.raises(Invalid, match="/columns/0/levels: column 'x' was read as number"):
        datasets.change_columns(towns.id, [ColumnFix(name="x", levels={"1": "2"})])
    changed, _ = datasets.change_columns(towns.id, [merged(Berln="Berlin")])
    text, _ = datasets.change_columns(changed.id, [ColumnFix(name="city", type="text")])
    assert cities(datasets, text)[4] == "Berln", "levels wait until it is a category again"


def test_a_level_like_one_that_stays_is_refused(datasets: Datasets, tmp_path: Path) -> None:
    """With as many levels, spellings are not unified: A and a are two."""
    path = tmp_path / "codes.csv"
    path.write_text("city\n" + "\n".join([f"c{i}x" for i in range(200)] + ["A", "a"] * 3))
    many, _ = datasets.add("codes", "text/csv", path)
    assert {"A", "a"} < set(datasets.distinct(many.id, "city"))
    with pytest.raises(Invalid, match="blanks or case"):
        datasets.change_columns(many.id, [merged(a="c1x")])
    both, _ = datasets.change_columns(many.id, [merged(a="c1x", A="c1x")])
    assert not {"A", "a"} & set(datasets.distinct(both.id, "city"))
