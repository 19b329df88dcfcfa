"""Owners, quotas, requests that come twice and the audit log, on both databases."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy import func, select

from core.access.audit import Audit
from core.access.callers import DATASET, MODEL, Caller, View
from core.access.idempotency import (
    AlreadyCompleted,
    IdempotentOperation,
    KeyReused,
    Replies,
    Reply,
)
from core.access.keys import Keys, Limits, Scope
from core.access.quotas import check_bytes
from core.access.shares import Shares
from core.database.database import Database
from core.database.schema import DatasetRow, JobRow, ModelRow, ReplyRow
from core.datasets.datasets import Datasets
from core.exceptions import Conflict, Invalid, LimitReached, NotFound, NotOwner, QuotaExceeded
from core.jobs.jobs import Jobs
from core.jobs.specs import TrainSpec
from core.registry.registry import Registry
from core.storage import ArtifactStore
from models.config import ModelConfig

ROWS = {"x": [1.0, 2.0], "y": [2.0, 4.0]}


def caller(owner: str, **more: Any) -> Caller:
    return Caller(View(owner, sees_all=False), actor=owner, **more)


def spec_of(dataset: str, model: str = "square") -> TrainSpec:
    return TrainSpec(model=model, dataset=dataset, config=ModelConfig(target="y"))


def at_once(database: Database, *works: Callable[[Database], object]) -> list[object]:
    """What each returns or raises, all begun at the same moment in a thread of its own."""
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[Database], object]) -> object:
        barrier.wait()
        try:
            return work(database)
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


@pytest.fixture
def annas(database: Database, store: ArtifactStore) -> Datasets:
    return Datasets(database, store, caller=caller("anna"))


@pytest.fixture
def bens(database: Database, store: ArtifactStore) -> Datasets:
    return Datasets(database, store, caller=caller("ben"))


def test_the_same_rows_are_a_data_set_of_each_owner(annas: Datasets, bens: Datasets) -> None:
    first, is_new = annas.add_columns("rows", ROWS)
    second, is_new_too = bens.add_columns("rows", ROWS)
    assert is_new
    assert is_new_too
    assert first.sha256 == second.sha256
    assert [d.id for d in annas.list().data] == [first.id]
    with pytest.raises(NotFound, match=f"there is no dataset '{first.id}'"):
        bens.get(first.id)
    bens.delete(second.id)
    assert annas.rows(first.id) == [{"x": 1.0, "y": 2.0}, {"x": 2.0, "y": 4.0}]


def test_everybodys_rows_are_not_taken_in_again(datasets: Datasets, annas: Datasets) -> None:
    everybodys, _ = datasets.add_columns("rows", ROWS)
    found, is_new = annas.add_columns("rows", ROWS)
    assert (found.id, is_new) == (everybodys.id, False)


def test_a_share_goes_with_what_is_shared(
    database: Database, annas: Datasets, bens: Datasets
) -> None:
    dataset, _ = annas.add_columns("rows", ROWS)
    shares = Shares(database, caller("anna"))
    assert shares.set(DATASET, dataset.id, ["zoe", "ben"]) == ["ben", "zoe"]
    assert bens.get(dataset.id).owner == "anna"
    with pytest.raises(NotOwner, match="only its owner changes it"):
        bens.delete(dataset.id)
    with pytest.raises(NotOwner):
        Shares(database, caller("ben")).set(DATASET, dataset.id, ["*"])
    annas.delete(dataset.id)
    with pytest.raises(NotFound):
        shares.get(DATASET, dataset.id)


def test_a_name_goes_to_the_first_of_two_who_ask_at_once(
    database: Database, annas: Datasets, bens: Datasets
) -> None:
    """And the other's job is not made."""
    ids = {"anna": annas.add_columns("a", ROWS)[0].id, "ben": bens.add_columns("b", ROWS)[0].id}

    def train(owner: str) -> Callable[[Database], object]:
        spec = spec_of(ids[owner])
        return lambda db: Jobs(db, caller(owner)).create(spec).owner

    results = at_once(database, train("anna"), train("ben"))
    refused = [result for result in results if isinstance(result, NotOwner)]
    won = [result for result in results if isinstance(result, str)]
    assert (len(refused), len(won)) == (1, 1)
    with database.read() as session:
        assert session.scalars(select(ModelRow.owner)).all() == won
        assert session.scalars(select(JobRow.owner)).all() == won


def test_a_name_that_is_only_reserved_is_no_model(
    database: Database, store: ArtifactStore, annas: Datasets
) -> None:
    dataset, _ = annas.add_columns("rows", ROWS)
    Jobs(database, caller("anna")).create(spec_of(dataset.id))
    registry = Registry(database, store, caller("anna"))
    assert registry.list().data == []
    with pytest.raises(NotFound):
        registry.get("square")
    assert Shares(database, caller("anna")).get(MODEL, "square") == []


def limited(database: Database, **limits: int) -> Caller:
    key, _ = Keys(database).create("anna", Scope.TRAIN, limits=Limits(**limits))
    return key.caller


def test_two_jobs_at_once_do_not_share_the_last_place(database: Database, annas: Datasets) -> None:
    dataset, _ = annas.add_columns("rows", ROWS)
    anna = limited(database, queued_jobs=1)

    def train(db: Database) -> object:
        return Jobs(db, anna).create(spec_of(dataset.id)).id

    results = at_once(database, train, train, train)
    assert sum(isinstance(result, LimitReached) for result in results) == 2
    assert len(Jobs(database, anna).list().data) == 1


def test_two_keys_of_an_owner_share_the_last_place(database: Database, annas: Datasets) -> None:
    dataset, _ = annas.add_columns("rows", ROWS)
    keys = [limited(database, queued_jobs=2) for _ in range(4)]

    def train(who: Caller) -> Callable[[Database], object]:
        return lambda db: Jobs(db, who).create(spec_of(dataset.id)).id

    results = at_once(database, *map(train, keys))
    assert sum(isinstance(result, LimitReached) for result in results) == 2


def test_a_resumed_job_counts_too(database: Database, annas: Datasets) -> None:
    dataset, _ = annas.add_columns("rows", ROWS)
    jobs = Jobs(database, limited(database, queued_jobs=1))
    first = jobs.create(spec_of(dataset.id))
    jobs.cancel(first.id)
    second = jobs.create(spec_of(dataset.id))
    with pytest.raises(LimitReached):
        jobs.resume(first.id)
    jobs.cancel(second.id)
    assert jobs.resume(first.id).status == "queued"


def test_what_is_no_longer_shared_is_not_trained_on(database: Database, annas: Datasets) -> None:
    """Neither does it keep its owner from deleting it."""
    dataset, _ = annas.add_columns("rows", ROWS)
    shares = Shares(database, caller("anna"))
    shares.set(DATASET, dataset.id, ["ben"])
    bens = Jobs(database, caller("ben"))
    first = bens.create(spec_of(dataset.id, "bens"))
    bens.cancel(first.id)
    shares.set(DATASET, dataset.id, [])
    with pytest.raises(Conflict, match="its data set was deleted, or is no longer shared"):
        bens.resume(first.id)
    shares.set(DATASET, dataset.id, ["ben"])
    waiting = bens.create(spec_of(dataset.id, "bens"))
    annas.delete(dataset.id)
    assert bens.get(waiting.id).status == "cancelled"
    [line] = Audit(database).list(object=waiting.id, owner="anna").data
    assert (line.action, line.details) == ("job.cancel", {"dataset": dataset.id})


def test_shares_that_are_set_at_once_are_one_of_them(database: Database, annas: Datasets) -> None:
    dataset, _ = annas.add_columns("rows", ROWS)
    wanted = [["ben"], ["ben"], ["zoe"], ["zoe", "ben"]]
    works = [lambda db, w=w: Shares(db, caller("anna")).set(DATASET, dataset.id, w) for w in wanted]
    for _ in range(5):
        results = at_once(database, *works)
        assert not [result for result in results if isinstance(result, Exception)]
        assert Shares(database, caller("anna")).get(DATASET, dataset.id) in (
            ["ben"], ["zoe"], ["ben", "zoe"],
        )  # fmt: skip


def test_a_name_without_versions_or_jobs_is_free_again(
    database: Database, annas: Datasets, bens: Datasets
) -> None:
    mine, theirs = (who.add_columns("rows", ROWS)[0].id for who in (annas, bens))
    jobs, others = Jobs(database, caller("anna")), Jobs(database, caller("ben"))
    first = jobs.create(spec_of(mine))
    with pytest.raises(NotOwner):
        others.create(spec_of(theirs))
    jobs.cancel(first.id)
    others.create(spec_of(theirs))
    with pytest.raises(NotOwner):
        jobs.resume(first.id)


def test_a_key_without_an_owner_answers_for_its_own_predictions_alone(
    database: Database, datasets: Datasets
) -> None:
    datasets.add_columns("everybodys", {"x": [float(i) for i in range(1000)]})
    key, _ = Keys(database).create("app", Scope.PREDICT, limits=Limits(stored_bytes=100))
    with database.begin() as session:
        check_bytes(session, key.caller, 100)
        with pytest.raises(QuotaExceeded, match="0 are in use, and 101 more are needed"):
            check_bytes(session, key.caller, 101)


def test_what_is_stored_is_counted_not_what_was_sent(
    database: Database, store: ArtifactStore, annas: Datasets, tmp_path: Path
) -> None:
    """A million equal numbers are a few bytes of Parquet, and eight megabytes here."""
    table = pa.table({"x": np.zeros(100_000)})
    parquet.write_table(table, tmp_path / "zeros.parquet", compression="zstd")
    sent = (tmp_path / "zeros.parquet").stat().st_size
    mine = Datasets(database, store, caller=limited(database, stored_bytes=20 * sent))
    with pytest.raises(QuotaExceeded):
        mine.add("zeros", "application/vnd.apache.parquet", tmp_path / "zeros.parquet")
    assert store.children("datasets") == []


def test_bytes_are_counted_over_all_of_an_owner(
    database: Database, store: ArtifactStore, annas: Datasets
) -> None:
    annas.add_columns("rows", ROWS)
    with database.read() as session:
        taken = session.scalars(select(DatasetRow.stored_bytes)).one()
    anna = limited(database, stored_bytes=2 * taken)
    mine = Datasets(database, store, caller=anna)
    mine.add_columns("rows", {"x": [1.0, 2.0], "y": [2.0, 5.0]})
    with pytest.raises(QuotaExceeded, match=f"{2 * taken} are in use, and {taken} more are needed"):
        mine.add_columns("rows", {"x": [1.0, 2.0], "y": [2.0, 6.0]})
    assert len(mine.list().data) == 2
    assert len(store.children("datasets")) == 2, "what was refused left no file"


@pytest.mark.parametrize("name", ["requests_per_minute", "stored_bytes", "queued_jobs"])
def test_a_limit_below_one_is_refused(database: Database, name: str) -> None:
    with pytest.raises(Invalid, match=f"{name}: 0: give at least 1"):
        limited(database, **{name: 0})


def once(fingerprint: str = "f", who: str = "anna") -> IdempotentOperation:
    def write(made: Any) -> Reply:
        return Reply(202, {"Location": f"/jobs/{made.id}"}, made.id.encode())

    return IdempotentOperation(who, "POST /train", "k", lambda: fingerprint, write)


def test_a_request_that_comes_twice_makes_one_job(database: Database, annas: Datasets) -> None:
    """Also at the same moment: whoever is later finds the other's row when it writes its own."""
    dataset, _ = annas.add_columns("rows", ROWS)
    jobs = Jobs(database, caller("anna", operation=once()))

    def train(_: Database) -> object:
        return jobs.create(spec_of(dataset.id)).id

    results = at_once(database, train, train, train)
    assert sum(isinstance(result, AlreadyCompleted) for result in results) == 2
    [made] = [job.id for job in jobs.list().data]
    found = Replies(database).find(once())
    assert found is not None
    assert found.reply == Reply(202, {"Location": f"/jobs/{made}"}, made.encode())
    found.check(once())
    with pytest.raises(KeyReused, match="'k' was sent with another request before"):
        found.check(once("g"))
    assert Replies(database).find(once(who="ben")) is None


def test_what_was_not_made_is_not_remembered(database: Database, annas: Datasets) -> None:
    jobs = Jobs(database, caller("anna", operation=once()))
    with pytest.raises(NotFound):
        jobs.create(spec_of("ds_none"))
    assert Replies(database).find(once()) is None
    assert Audit(database).list(object="ds_none").data == []
    with database.read() as session:
        assert session.scalars(select(func.count()).select_from(ReplyRow)).one() == 0


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


def test_keys_leave_a_line(database: Database) -> None:
    keys = Keys(database, actor="command line")
    key, text = keys.create("anna", Scope.TRAIN, owner="analysts")
    keys.revoke(key.id)
    lines = Audit(database).list(object=key.id).data
    assert [line.action for line in lines] == ["key.revoke", "key.create"]
    assert {line.actor for line in lines} == {"command line"}
    assert text not in str(lines)
    assert (key.owner, key.caller.owner, key.caller.view.sees_all) == (
        "analysts",
        "analysts",
        False,
    )
    with pytest.raises(Invalid, match="means everybody"):
        keys.create("x", Scope.TRAIN, owner="*")


def test_owners_share_a_disk_and_one_alone_may_fill_it(database: Database, annas: Datasets) -> None:
    annas.add_columns("rows", ROWS)
    anna = caller("anna")
    with database.begin() as session:
        taken = session.scalars(select(DatasetRow.stored_bytes)).one()
        check_bytes(session, anna, 10, free=0)
    Keys(database).create("bens", Scope.TRAIN, owner="ben")
    with database.begin() as session:
        check_bytes(session, anna, 10, free=taken + 10)
        with pytest.raises(QuotaExceeded, match=f"you would store {taken + 10}, and may store"):
            check_bytes(session, anna, 10, free=taken + 9)
        check_bytes(session, caller("ben"), taken, free=taken)
        check_bytes(session, anna, 10)
