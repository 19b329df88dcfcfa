"""Pages end early, before they have many bytes; the cursor goes on there, and nothing is lost."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from core.access.audit import Audit, record
from core.access.callers import Caller
from core.database.database import Database
from core.database.schema import AuditRow
from core.database.stored_bytes import stored_bytes
from core.exceptions import TooLarge
from core.jobs.jobs import LISTED_SPEC_BYTES, MAX_SPEC_BYTES, Jobs
from core.jobs.specs import TrainSpec
from core.paging import MAX_PAGE_BYTES, num_fitting
from models.config import ModelConfig
from models.config.model import FeatureConfig


def pages(audit: Audit, limit: int) -> Iterator[list[Any]]:
    cursor: str | None = None
    while True:
        page = audit.list(limit=limit, cursor=cursor)
        yield page.data
        if (cursor := page.next_cursor) is None:
            return


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ([], 0),
        ([1, 2, 3], 3),
        ([MAX_PAGE_BYTES, 1], 1),
        ([MAX_PAGE_BYTES - 1, 1, 1], 2),
        ([MAX_PAGE_BYTES + 1, 1], 1),
    ],
)
def test_a_page_has_what_fits_and_at_least_one(sizes: list[int], count: int) -> None:
    assert num_fitting(sizes) == count


def test_a_list_of_large_rows_has_short_pages(database: Database) -> None:
    text = "x" * (MAX_PAGE_BYTES // 3)
    with database.begin() as session:
        for number in range(7):
            record(session, Caller(), "test.size", str(number), text=text)
    found = list(pages(Audit(database), 1000))
    assert [len(page) for page in found] == [2, 2, 2, 1]
    assert [row.object for page in found for row in page] == list("6543210")


def test_small_rows_make_whole_pages(database: Database) -> None:
    with database.begin() as session:
        for number in range(5):
            record(session, Caller(), "test.size", str(number))
    assert [len(page) for page in pages(Audit(database), 2)] == [2, 2, 1]


def test_the_database_counts_bytes(database: Database) -> None:
    with database.begin() as session:
        record(session, Caller(), "test.size", "one", name="Fläche")
        session.flush()
        [size] = session.scalars(select(stored_bytes([AuditRow.details])))
    assert size == len('{"name":"Fläche"}'.encode())


def test_memory_is_held_before_a_page_is_read(
    jobs: Jobs, dataset_id: str, database: Database
) -> None:
    held: list[int] = []
    jobs.create(wide_training(dataset_id, "narrow", 1))
    jobs.create(wide_training(dataset_id, "wide", 400))
    seen = Jobs(database, Caller(hold=held.append))
    page = seen.list(limit=10)
    assert [job.model for job in page.data] == ["wide", "narrow"]
    [num_bytes] = held
    assert 0 < num_bytes < LISTED_SPEC_BYTES


def test_lists_of_jobs_leave_out_long_requests(jobs: Jobs, dataset_id: str) -> None:
    wide = jobs.create(wide_training(dataset_id, "wide", 400))
    narrow = jobs.create(wide_training(dataset_id, "narrow", 1))
    listed = {job.id: job for job in jobs.list().data}
    assert (listed[wide.id].request, listed[wide.id].notes) == ({}, ())
    assert listed[narrow.id].request == narrow.request
    assert listed[narrow.id].request["features"]
    assert len(jobs.get(wide.id).request["features"]) == 400


def test_a_request_has_a_bound(jobs: Jobs, dataset_id: str) -> None:
    with pytest.raises(TooLarge, match=f"one may have {MAX_SPEC_BYTES}: leave out"):
        jobs.create(wide_training(dataset_id, "wide", 30_000))
    assert jobs.list().data == []


def wide_training(dataset: str, model: str, width: int) -> TrainSpec:
    names = [f"{number:05d}".ljust(256, "x") for number in range(width)]
    features = tuple(FeatureConfig(name=name, type="number") for name in names)
    config = ModelConfig(target="y", task="regression", features=features)
    return TrainSpec(model=model, dataset=dataset, config=config, notes=("a note",))
