"""Levels that are read as another one: kept, added up, undone, and checked."""

from pathlib import Path

import pytest

from core.datasets.dataset import Dataset
from core.datasets.datasets import Datasets
from core.datasets.understanding.fixes import ColumnFix
from core.exceptions import Invalid

CITIES = ["Munich", "Muenich", "muenich ", "Berlin", "Berln", "Rome", None]


def merged(**levels: str) -> ColumnFix:
    return ColumnFix(name="city", levels=levels)


@pytest.fixture
def added(datasets: Datasets, tmp_path: Path) -> Dataset:
    path = tmp_path / "cities.csv"
    path.write_text("city,x\n" + "".join(f"{city or ''},{i}\n" for i, city in enumerate(CITIES)))
    return datasets.add("cities", "text/csv", path)[0]


def cities(datasets: Datasets, dataset: Dataset) -> list[str | None]:
    return [row["city"] for row in datasets.rows(dataset.id)]


def test_a_level_is_read_as_another_whatever_its_blanks_and_case(
    datasets: Datasets, added: Dataset
) -> None:
    changed, _ = datasets.change_columns(added.id, [merged(Muenich="Munich")])
    assert cities(datasets, changed) == ["Munich"] * 3 + ["Berlin", "Berln", "Rome", None]
    assert changed.readings[0].levels == {"Muenich": "Munich"}
    assert datasets.get(changed.id) == changed
    assert cities(datasets, added)[1] == "Muenich", "the old one is kept"


def test_later_levels_are_added_and_those_before_follow(datasets: Datasets, added: Dataset) -> None:
    once, _ = datasets.change_columns(added.id, [merged(Muenich="Munich")])
    twice, _ = datasets.change_columns(once.id, [merged(Munich="Rome", Berln="Berlin")])
    assert cities(datasets, twice) == ["Rome"] * 3 + ["Berlin", "Berlin", "Rome", None]
    expected = {"Muenich": "Rome", "Munich": "Rome", "Berln": "Berlin"}
    assert twice.readings[0].levels == expected
    other, _ = datasets.change_columns(twice.id, [ColumnFix(name="x", use=False)])
    assert other.readings[0].levels == expected, "other changes keep them"


def test_only_a_category_has_levels(datasets: Datasets, added: Dataset) -> None:
    with pytest.raises(Invalid, match="/columns/0/levels: column 'x' was read as number"):
        datasets.change_columns(added.id, [ColumnFix(name="x", levels={"1": "2"})])
    changed, _ = datasets.change_columns(added.id, [merged(Berln="Berlin")])
    text, _ = datasets.change_columns(changed.id, [ColumnFix(name="city", type="text")])
    assert cities(datasets, text)[4] == "Berln", "levels wait until it is a category again"


def test_a_level_that_differs_from_one_that_stays_in_case_alone_is_refused(
    datasets: Datasets, tmp_path: Path
) -> None:
    """With as many levels, spellings are not unified: A and a are two."""
    path = tmp_path / "codes.csv"
    path.write_text("city\n" + "\n".join([f"c{i}x" for i in range(200)] + ["A", "a"] * 3))
    many, _ = datasets.add("codes", "text/csv", path)
    assert {"A", "a"} < set(datasets.distinct(many.id, "city"))
    with pytest.raises(Invalid, match="blanks or case"):
        datasets.change_columns(many.id, [merged(a="c1x")])
    both, _ = datasets.change_columns(many.id, [merged(a="c1x", A="c1x")])
    assert not {"A", "a"} & set(datasets.distinct(both.id, "city"))
