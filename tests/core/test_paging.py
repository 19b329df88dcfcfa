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


def test_a_page_has_what_fits_and_at_least_one() -> None:
    assert num_fitting([]) == 0
    assert num_fitting([1, 2, 3]) == 3
    assert num_fitting([MAX_PAGE_BYTES - 1, 1, 1]) == 2
    assert num_fitting([MAX_PAGE_BYTES + 1, 1]) == 1


def test_a_list_of_large_rows_has_short_pages(database: Database) -> None:
    text = "x" * (MAX_PAGE_BYTES // 3)
    with database.begin() as session:
        for number in range(7):
            record(session, Caller(), "test.size", str(number), text=text)
    found = list(pages(Audit(database), 1000))
    assert [len(page) for page in found] == [2, 2, 2, 1]
    assert [row.object for page in found for row in page] == list("6543210")


def test_the_database_counts_bytes_and_small_rows_make_whole_pages(database: Database) -> None:
    with database.begin() as session:
        for number in range(5):
            record(session, Caller(), "test.size", str(number), name="Fläche")
        session.flush()
        sizes = session.scalars(select(stored_bytes([AuditRow.details]))).all()
    assert sizes == [len('{"name":"Fläche"}'.encode())] * 5
    assert [len(page) for page in pages(Audit(database), 2)] == [2, 2, 1]


def test_lists_of_jobs_leave_out_long_requests_and_hold_memory(
    jobs: Jobs, dataset_id: str, database: Database
) -> None:
    held: list[int] = []
    narrow = jobs.create(wide_training(dataset_id, "narrow", 1))
    wide = jobs.create(wide_training(dataset_id, "wide", 400))
    first, second = Jobs(database, Caller(hold=held.append)).list(limit=10).data
    assert (first.id, first.request, first.notes) == (wide.id, {}, ())
    assert (second.id, second.request) == (narrow.id, narrow.request)
    assert len(jobs.get(wide.id).request["features"]) == 400
    [num_bytes] = held
    assert 0 < num_bytes < LISTED_SPEC_BYTES


def test_a_request_has_a_bound(jobs: Jobs, dataset_id: str) -> None:
    with pytest.raises(TooLarge, match=str(MAX_SPEC_BYTES)):
        jobs.create(wide_training(dataset_id, "wide", 30_000))
    assert jobs.list().data == []


def wide_training(dataset: str, model: str, width: int) -> TrainSpec:
    names = [f"{number:05d}".ljust(256, "x") for number in range(width)]
    features = tuple(FeatureConfig(name=name, type="number") for name in names)
    config = ModelConfig(target="y", task="regression", features=features)
    return TrainSpec(model=model, dataset=dataset, config=config, notes=("a note",))
