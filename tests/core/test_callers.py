"""Owners, quotas, requests that come twice and the audit log, on both databases."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy import select

from core.access.audit import Audit
from core.access.callers import DATASET, MODEL, Caller
from core.access.keys import Keys, Limits, Scope
from core.access.quotas import check_bytes
from core.access.shares import Shares
from core.database.database import Database
from core.database.schema import DatasetRow, JobRow, ModelRow
from core.datasets.datasets import Datasets
from core.exceptions import Conflict, LimitReached, NotFound, NotOwner, QuotaExceeded
from core.jobs.jobs import Jobs
from core.jobs.specs import TrainSpec
from core.registry.registry import Registry
from core.storage import ArtifactStore
from models.config import ModelConfig
from tests.core.conftest import at_once, owner

ROWS = {"x": [1.0, 2.0], "y": [2.0, 4.0]}
ANNA, BEN = owner("anna"), owner("ben")


def spec_of(dataset: str, model: str = "square") -> TrainSpec:
    return TrainSpec(model=model, dataset=dataset, config=ModelConfig(target="y"))


def outcomes(*works: Callable[[], object]) -> list[object]:
    """What each returns or raises, all begun at the same moment in a thread of its own."""

    def run(index: int) -> object:
        try:
            return works[index]()
        except Exception as error:
            return error

    return at_once(run, len(works))


def limited(database: Database, **limits: int) -> Caller:
    return Keys(database).create("anna", Scope.TRAIN, limits=Limits(**limits))[0].caller


@pytest.fixture
def annas(database: Database, store: ArtifactStore) -> Datasets:
    return Datasets(database, store, caller=ANNA)


@pytest.fixture
def bens(database: Database, store: ArtifactStore) -> Datasets:
    return Datasets(database, store, caller=BEN)


@pytest.fixture
def rows(annas: Datasets) -> str:
    """Anna's data set."""
    return annas.add_columns("rows", ROWS)[0].id


def test_the_first_of_two_gets_the_name(database: Database, bens: Datasets, rows: str) -> None:
    """And the other's job is not made."""
    theirs = bens.add_columns("b", ROWS)[0].id
    results = outcomes(
        lambda: Jobs(database, ANNA).create(spec_of(rows)).owner,
        lambda: Jobs(database, BEN).create(spec_of(theirs)).owner,
    )
    won = [result for result in results if isinstance(result, str)]
    assert len(won) == 1
    assert sum(isinstance(result, NotOwner) for result in results) == 1
    with database.read() as session:
        assert session.scalars(select(ModelRow.owner)).all() == won
        assert session.scalars(select(JobRow.owner)).all() == won


def test_a_name_that_is_only_reserved_is_no_model_and_becomes_free_again(
    database: Database, store: ArtifactStore, bens: Datasets, rows: str
) -> None:
    theirs = bens.add_columns("rows", ROWS)[0].id
    jobs, others = Jobs(database, ANNA), Jobs(database, BEN)
    first = jobs.create(spec_of(rows))
    registry = Registry(database, store, ANNA)
    assert registry.list().data == []
    with pytest.raises(NotFound):
        registry.get("square")
    assert Shares(database, ANNA).get(MODEL, "square") == []
    with pytest.raises(NotOwner):
        others.create(spec_of(theirs))
    jobs.cancel(first.id)
    others.create(spec_of(theirs))
    with pytest.raises(NotOwner):
        jobs.resume(first.id)


@pytest.mark.parametrize(("keys", "places"), [(1, 1), (4, 2)])
def test_jobs_at_once_do_not_share_the_last_place(
    database: Database, rows: str, keys: int, places: int
) -> None:
    """Neither those of one key nor those of several of an owner."""
    callers = [limited(database, queued_jobs=places) for _ in range(keys)] * (4 // keys)
    works = [lambda who=who: Jobs(database, who).create(spec_of(rows)) for who in callers]
    refused = [isinstance(result, LimitReached) for result in outcomes(*works)]
    assert sum(refused) == 4 - places
    assert len(Jobs(database).list().data) == places


def test_a_resumed_job_counts_too(database: Database, rows: str) -> None:
    jobs = Jobs(database, limited(database, queued_jobs=1))
    first = jobs.create(spec_of(rows))
    jobs.cancel(first.id)
    second = jobs.create(spec_of(rows))
    with pytest.raises(LimitReached):
        jobs.resume(first.id)
    jobs.cancel(second.id)
    assert jobs.resume(first.id).status == "queued"


def test_what_is_no_longer_shared_is_not_trained_on(
    database: Database, annas: Datasets, rows: str
) -> None:
    """Neither does it keep its owner from deleting it."""
    shares, bens = Shares(database, ANNA), Jobs(database, BEN)
    shares.set(DATASET, rows, ["ben"])
    first = bens.create(spec_of(rows, "bens"))
    bens.cancel(first.id)
    shares.set(DATASET, rows, [])
    with pytest.raises(Conflict):
        bens.resume(first.id)
    shares.set(DATASET, rows, ["ben"])
    waiting = bens.create(spec_of(rows, "bens"))
    annas.delete(rows)
    assert bens.get(waiting.id).status == "cancelled"
    [line] = Audit(database).list(object=waiting.id, owner="anna").data
    assert (line.action, line.details) == ("job.cancel", {"dataset": rows})


def test_a_key_without_owner_answers_for_its_own(database: Database, datasets: Datasets) -> None:
    datasets.add_columns("everybodys", {"x": [float(i) for i in range(1000)]})
    key, _ = Keys(database).create("app", Scope.PREDICT, limits=Limits(stored_bytes=100))
    with database.begin() as session:
        check_bytes(session, key.caller, 100)
        with pytest.raises(QuotaExceeded):
            check_bytes(session, key.caller, 101)


def test_what_is_stored_counts(database: Database, store: ArtifactStore, tmp_path: Path) -> None:
    """Many equal numbers are a few bytes of Parquet, and eight each here."""
    file = tmp_path / "zeros.parquet"
    parquet.write_table(pa.table({"x": np.zeros(100_000)}), file, compression="zstd")
    bound = limited(database, stored_bytes=20 * file.stat().st_size)
    with pytest.raises(QuotaExceeded):
        Datasets(database, store, caller=bound).add("zeros", "application/vnd.apache.parquet", file)
    assert store.children("datasets") == []


def test_the_audit_log_is_paged_filtered_and_swept(database: Database, annas: Datasets) -> None:
    for i in range(5):
        annas.add_columns(f"rows {i}", {"x": [float(i)]})
    audit = Audit(database)
    page = audit.list(limit=3)
    rest = audit.list(limit=3, cursor=page.next_cursor)
    names = [line.details["name"] for line in (*page.data, *rest.data)]
    assert names == [f"rows {i}" for i in (4, 3, 2, 1, 0)]
    assert audit.list(owner="ben").data == []
    assert len(audit.list(owner="anna").data) == 5
    audit.sweep(datetime.now(UTC) + timedelta(seconds=1))
    assert audit.list().data == []


def test_owners_share_a_disk_and_one_alone_may_fill_it(database: Database, rows: str) -> None:
    with database.begin() as session:
        taken = session.scalars(select(DatasetRow.stored_bytes)).one()
        check_bytes(session, ANNA, 10, free=0)
    Keys(database).create("bens", Scope.TRAIN, owner="ben")
    with database.begin() as session:
        check_bytes(session, ANNA, 10, free=taken + 10)
        with pytest.raises(QuotaExceeded, match=f"you would store {taken + 10}"):
            check_bytes(session, ANNA, 10, free=taken + 9)
        check_bytes(session, BEN, taken, free=taken)
        check_bytes(session, ANNA, 10)
