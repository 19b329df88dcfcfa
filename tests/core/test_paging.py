"""Lists: pages, cursors, and names that are searched."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from core.access.audit import Audit, record
from core.access.callers import SERVICE, Caller
from core.database.database import Database
from core.database.schema import AuditRow
from core.database.stored_bytes import stored_bytes
from core.datasets.datasets import Datasets
from core.exceptions import Invalid, TooLarge
from core.jobs.jobs import MAX_SPEC_BYTES, Jobs
from core.jobs.specs import TrainSpec
from core.names import check_model_name, check_name
from core.paging import (
    MAX_LIMIT,
    MAX_PAGE_BYTES,
    Page,
    check_limit,
    decode_cursor,
    decode_number,
    encode_cursor,
    num_fitting,
    page_of,
)
from core.registry.registry import Registry
from core.search import Search
from core.storage import ArtifactStore
from models.config import ModelConfig
from models.config.model import FeatureConfig
from tests.core.conftest import owner


def pages(audit: Audit, limit: int) -> Iterator[list[Any]]:
    cursor: str | None = None
    while True:
        page = audit.list(limit=limit, cursor=cursor)
        yield page.data
        if (cursor := page.next_cursor) is None:
            return


def test_a_page_has_what_fits_and_at_least_one() -> None:
    assert num_fitting([]) == 0
    assert num_fitting([1, 2, 3]) == 3
    assert num_fitting([MAX_PAGE_BYTES - 1, 1, 1]) == 2
    assert num_fitting([MAX_PAGE_BYTES + 1, 1]) == 1


def test_the_database_counts_bytes_and_small_rows_make_whole_pages(database: Database) -> None:
    with database.begin() as session:
        for number in range(5):
            record(session, Caller(), "test.size", str(number), name="Fläche")
        session.flush()
        sizes = session.scalars(select(stored_bytes([AuditRow.details]))).all()
    assert sizes == [len('{"name":"Fläche"}'.encode())] * 5
    assert [len(page) for page in pages(Audit(database), 2)] == [2, 2, 1]


def test_a_request_has_a_bound(jobs: Jobs, dataset_id: str) -> None:
    with pytest.raises(TooLarge, match=str(MAX_SPEC_BYTES)):
        jobs.create(wide_training(dataset_id, "wide", 30_000))
    assert jobs.list().data == []


def wide_training(dataset: str, model: str, width: int) -> TrainSpec:
    names = [f"{number:05d}".ljust(256, "x") for number in range(width)]
    features = tuple(FeatureConfig(name=name, type="number") for name in names)
    config = ModelConfig(target="y", task="regression", features=features)
    return TrainSpec(model=model, dataset=dataset, config=config, notes=("a note",))


@pytest.mark.parametrize("name", ["", "A", "-a", ".a", "a/b", "x" * 64, "a\n", "ä", "a\x00"])
def test_other_model_names_are_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_model_name(name)
    assert refused.value.errors[0][0] == "/model"


@pytest.mark.parametrize("name", ["  ", "x" * 257, "a\nb", "a\x00", "\x9f", "\u2028b", "\ud800b"])
def test_names_that_cannot_be_written_down_are_refused(name: str) -> None:
    with pytest.raises(Invalid):
        check_name(name)


def test_a_cursor_goes_back_to_its_list() -> None:
    assert decode_cursor("models", encode_cursor("models", "concrete:x")) == "concrete:x"
    assert decode_number("jobs", encode_cursor("jobs", 17)) == 17


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "****",
        "ü",
        "a" * 10_000,
        encode_cursor("datasets", 3),
        encode_cursor("jobs", -1),
        encode_cursor("jobs", "1e3"),
        encode_cursor("jobs", 10**18),
        encode_cursor("jobs", 3) + "=",
    ],
)
def test_any_other_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(Invalid) as refused:
        decode_number("jobs", cursor)
    assert refused.value.errors[0][0] == "cursor"
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("limit", [0, MAX_LIMIT + 1])
def test_a_limit_is_not_clipped(limit: int) -> None:
    with pytest.raises(Invalid, match=f"{limit} is out of range: give 1 to 1000"):
        check_limit(limit)


def test_the_last_page_has_no_cursor() -> None:
    assert page_of("jobs", ["a", "b"], [9, 8], limit=2) == Page(["a", "b"], None)
    more = page_of("jobs", ["a", "b", "c"], [9, 8, 7], limit=2)
    assert more == Page(["a", "b"], encode_cursor("jobs", 8))


DESCRIPTION = {"task": "regression", "target": "y", "imported": {"origin": None, "bytes": 1}}


def data(database: Database, store: ArtifactStore, name: str, caller: Caller = SERVICE) -> str:
    rows = {"x": [1.0, 2.0], "y": [2.0, 4.0], name: [0.0, 1.0]}
    return Datasets(database, store, caller=caller).add_columns(name, rows)[0].id


def test_each_word_is_a_part_of_the_name(database: Database, store: ArtifactStore) -> None:
    names = ("Bike hires 2025.csv", "bike_repairs.csv", "100%.csv")
    ids = {name: data(database, store, name) for name in names}
    search = Search(database, SERVICE)
    wanted = {
        "bike": ["bike_repairs.csv", "Bike hires 2025.csv"],  # newest first
        "HIRES bike": ["Bike hires 2025.csv"],
        "bike cars": [],
        "%": ["100%.csv"],
        "e_r": ["bike_repairs.csv"],  # not "e hires", though _ is any letter in SQL
        "\x00bike\n": ["bike_repairs.csv", "Bike hires 2025.csv"],
        "": list(reversed(names)),
        ids["100%.csv"]: ["100%.csv"],
    }
    assert {text: [one.name for one in search.datasets(text, 10)] for text in wanted} == wanted
    assert len(search.datasets("csv", 2)) == 2


def test_others_are_not_found(database: Database, store: ArtifactStore, artifact: Path) -> None:
    for caller, name in ((owner("anna"), "annas"), (owner("ben"), "bens"), (SERVICE, "alls")):
        dataset = data(database, store, name, caller)
        Registry(database, store, caller).add(name, artifact, DESCRIPTION)
        spec = TrainSpec(model=name, dataset=dataset, config=ModelConfig(target="y"))
        Jobs(database, caller).create(spec)
    search = Search(database, owner("anna"))
    assert {one.name for one in search.models("s", 10)} == {"annas", "alls"}
    assert {one.name for one in search.datasets("s", 10)} == {"annas", "alls"}
    assert {one.model for one in search.jobs("s", 10)} == {"annas", "alls"}
