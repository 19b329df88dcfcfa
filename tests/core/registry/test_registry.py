"""Versions: published whole or not at all, numbered once, with aliases that move."""

import copy
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event, update
from sqlalchemy.exc import StatementError

from core.database.database import Database
from core.database.schema import ModelRow
from core.exceptions import Conflict, Invalid, LostClaim, NotFound
from core.jobs.jobs import Claim, Jobs
from core.jobs.specs import TrainSpec
from core.registry.registry import Registry, Version
from core.storage import ArtifactStore

DESCRIPTION = {"task": "regression", "metrics": {"rmse": 1.5, "coverage": {"0.9": 0.91}}}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """What a training run leaves: a model's directory."""
    path = tmp_path / "model"
    (path / "variants").mkdir(parents=True)
    (path / "model.json").write_text("{}")
    (path / "variants" / "0.safetensors").write_bytes(b"\x00" * 64)
    return path


@pytest.fixture
def claim(jobs: Jobs, spec: TrainSpec) -> Callable[[], Claim]:
    """Each call gives the claim on a new job."""

    def make() -> Claim:
        job = jobs.create(spec)
        claim = jobs.claim(job.id, "worker-1", 60)
        assert claim is not None
        return claim

    return make


@pytest.fixture
def publish(
    registry: Registry, claim: Callable[[], Claim], directory: Path
) -> Callable[..., Version]:
    def do(model: str = "square", alias: str | None = None) -> Version:
        return registry.publish(claim(), model, directory, DESCRIPTION, "ds_1", alias)

    return do


def artifacts(store: ArtifactStore) -> list[str]:
    return [f"models/square/{name}" for name in store.children("models/square")]


def test_publishing_stores_the_files_and_ends_the_job(
    registry: Registry, jobs: Jobs, claim: Callable[[], Claim], directory: Path
) -> None:
    mine = claim()
    version = registry.publish(mine, "square", directory, DESCRIPTION, "ds_1", "champion")
    assert (version.version, version.aliases, version.job) == (1, ("champion",), mine.job_id)
    assert version.description == DESCRIPTION
    assert version.created_at.utcoffset() == timedelta(0)
    assert (registry.path(version) / "variants" / "0.safetensors").read_bytes() == b"\x00" * 64
    job = jobs.get(mine.job_id)
    assert (job.status, job.version, job.metrics) == ("succeeded", 1, DESCRIPTION["metrics"])
    assert jobs.events(job.id)[-1].data == {"status": "succeeded", "version": 1}


def test_a_version_is_found_by_number_alias_or_as_the_newest(
    registry: Registry, publish: Callable[..., Version]
) -> None:
    first, second = publish(alias="champion"), publish()
    assert registry.get("square", 1) == registry.get("square", "1") == first
    assert registry.get("square", "champion") == first
    assert registry.get("square") == second


@pytest.mark.parametrize(
    ("model", "version", "message"),
    [
        ("cube", None, "there is no model 'cube'"),
        ("cube", 1, "there is no model 'cube'"),
        ("square", 2, "there is no version 'square/2'"),
        ("square", 0, "there is no version 'square/0'"),
        ("square", -1, "there is no version 'square/-1'"),
        ("square", 10**30, "there is no version"),
        ("square", "9" * 10, "there is no version"),
        ("square", "challenger", "there is no version 'square/challenger'"),
        ("square", "²", "there is no version"),
        ("square", "\x00", "there is no version"),
        ("square", "\ud800", "there is no version"),
        ("\x00", None, "there is no model"),
        ("../square", None, "there is no model"),
    ],
)
def test_what_does_not_exist_is_not_found(
    registry: Registry,
    publish: Callable[..., Version],
    model: str,
    version: int | str | None,
    message: str,
) -> None:
    publish()
    with pytest.raises(NotFound, match=message):
        registry.get(model, version)


def test_a_stale_claim_publishes_nothing(
    registry: Registry,
    jobs: Jobs,
    claim: Callable[[], Claim],
    directory: Path,
    store: ArtifactStore,
) -> None:
    """The worker was thought lost while it trained; another one has the job now."""
    stale = claim()
    jobs.reap(jobs.pulses(), max_attempts=3)
    fresh = jobs.claim(stale.job_id, "worker-2", 60)
    assert fresh is not None
    with pytest.raises(LostClaim):
        registry.publish(stale, "square", directory, DESCRIPTION, "ds_1", "champion")
    assert artifacts(store) == []
    assert jobs.get(stale.job_id).status == "running"
    assert registry.publish(fresh, "square", directory, DESCRIPTION, "ds_1").version == 1


def test_a_cancelled_job_publishes_nothing(
    registry: Registry,
    jobs: Jobs,
    claim: Callable[[], Claim],
    directory: Path,
    store: ArtifactStore,
) -> None:
    mine = claim()
    jobs.cancel(mine.job_id)
    with pytest.raises(LostClaim, match="was cancelled before its model was published"):
        registry.publish(mine, "square", directory, DESCRIPTION, "ds_1", "champion")
    assert jobs.get(mine.job_id).status == "cancelled"
    assert artifacts(store) == []
    assert registry.list().data == []


class Killed(BaseException):
    """As if the process ended here."""


def dying(store: ArtifactStore) -> ArtifactStore:
    """Publishes, then the process is gone: nothing after it runs, cleaning up neither."""
    found = copy.copy(store)

    def put_and_die(key: str, source: Path) -> None:
        store.put_directory(key, source)
        found.delete = lambda key: None  # type: ignore[method-assign]
        raise Killed

    found.put_directory = put_and_die  # type: ignore[method-assign]
    return found


def test_a_crash_between_files_and_row_leaves_no_version(
    database: Database,
    jobs: Jobs,
    claim: Callable[[], Claim],
    directory: Path,
    store: ArtifactStore,
) -> None:
    registry, first = Registry(database, store), claim()
    with pytest.raises(Killed):
        Registry(database, dying(store)).publish(
            first, "square", directory, DESCRIPTION, "ds_1", "champion"
        )
    assert artifacts(store) == [f"models/square/{first.job_id}-1"]
    assert registry.list().data == []
    jobs.reap(jobs.pulses(), max_attempts=3)
    second = jobs.claim(first.job_id, "worker-2", 60)
    assert second is not None
    version = registry.publish(second, "square", directory, DESCRIPTION, "ds_1", "champion")
    assert version.version == 1
    assert artifacts(store) == [f"models/square/{first.job_id}-2"]  # the leftover is gone


def test_what_a_failing_transaction_leaves_is_the_next_ones_to_remove(
    registry: Registry,
    jobs: Jobs,
    claim: Callable[[], Claim],
    directory: Path,
    store: ArtifactStore,
) -> None:
    mine = claim()
    with pytest.raises((TypeError, StatementError)):
        registry.publish(mine, "square", directory, {"task": object()}, "ds_1")
    assert jobs.get(mine.job_id).status == "running"
    left = artifacts(store)
    assert registry.publish(mine, "square", directory, DESCRIPTION, "ds_1").version == 1
    assert artifacts(store) == left, "one, that the second publication has replaced"


def test_numbers_are_never_used_again(
    registry: Registry, publish: Callable[..., Version], store: ArtifactStore
) -> None:
    publish()
    registry.delete_version("square", publish().version)
    assert publish().version == 3
    registry.delete_model("square")
    assert artifacts(store) == []
    assert registry.list().data == []
    with pytest.raises(NotFound):
        registry.versions("square")
    assert publish().version == 4


def test_versions_published_at_once_get_different_numbers(
    registry: Registry, claim: Callable[[], Claim], directory: Path
) -> None:
    claims = [claim() for _ in range(6)]
    start = threading.Barrier(6)
    numbers: list[int] = []

    def publish(mine: Claim) -> None:
        start.wait()
        version = registry.publish(mine, "square", directory, DESCRIPTION, "ds_1", "newest")
        numbers.append(version.version)

    threads = [threading.Thread(target=publish, args=(mine,)) for mine in claims]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == [1, 2, 3, 4, 5, 6]
    assert registry.get("square", "newest").version == 6


def test_an_alias_moves(registry: Registry, publish: Callable[..., Version]) -> None:
    publish(alias="champion")
    publish()
    assert registry.set_alias("square", "champion", 2).aliases == ("champion",)
    assert registry.get("square", "champion").version == 2
    assert registry.get("square", 1).aliases == ()
    publish(alias="champion")
    assert registry.get("square", "champion").version == 3


@pytest.mark.parametrize("alias", ["3", "007", "", "Champion", "a b", "a" * 64, "-a", "a\n", "é"])
def test_an_alias_that_could_be_misread_is_refused(
    registry: Registry, publish: Callable[..., Version], alias: str
) -> None:
    publish()
    with pytest.raises(Invalid) as refused:
        registry.set_alias("square", alias, 1)
    assert refused.value.errors[0][0] == "alias"


def test_aliases_point_at_versions_that_exist(
    registry: Registry, publish: Callable[..., Version]
) -> None:
    publish()
    with pytest.raises(NotFound, match="square/2"):
        registry.set_alias("square", "champion", 2)
    with pytest.raises(NotFound, match="cube"):
        registry.set_alias("cube", "champion", 1)
    with pytest.raises(NotFound, match="square/champion"):
        registry.delete_alias("square", "champion")


def test_a_version_with_an_alias_is_kept(
    registry: Registry, publish: Callable[..., Version]
) -> None:
    """Somebody predicts by that name: they would get an error out of the blue."""
    version = publish(alias="champion")
    with pytest.raises(Conflict, match="'champion'"):
        registry.delete_version("square", 1)
    assert registry.path(version).is_dir()
    registry.delete_alias("square", "champion")
    registry.delete_version("square", 1)
    with pytest.raises(NotFound):
        registry.path(version)


def test_deleting_a_model_takes_its_aliases_along(
    registry: Registry, publish: Callable[..., Version]
) -> None:
    publish(alias="champion")
    publish("cube", alias="champion")
    registry.delete_model("square")
    assert [version.model for version in registry.list().data] == ["cube"]
    assert registry.get("cube", "champion").version == 1
    with pytest.raises(NotFound):
        registry.delete_model("square")


def test_models_are_listed_by_their_newest_version(
    registry: Registry, publish: Callable[..., Version]
) -> None:
    for model in ("c", "a", "b", "a"):
        publish(model)
    page = registry.list(limit=2)
    assert [(v.model, v.version) for v in page.data] == [("a", 2), ("b", 1)]
    page = registry.list(limit=2, cursor=page.next_cursor)
    assert [(v.model, v.version) for v in page.data] == [("c", 1)]
    assert page.next_cursor is None
    assert [v.version for v in registry.versions("a")] == [2, 1]


def test_a_list_takes_as_many_queries_for_many_models_as_for_one(
    database: Database, registry: Registry, publish: Callable[..., Version]
) -> None:
    def statements(work: Callable[[], object]) -> int:
        seen: list[object] = []
        event.listen(database.engine, "before_cursor_execute", lambda *_: seen.append(_))
        work()
        return len(seen)

    publish("a", "champion")
    few = statements(registry.list), statements(lambda: registry.versions("a"))
    for model in ("b", "c", "a", "a", "d"):
        publish(model, "newest")
    registry.set_alias("a", "best", 3)
    many = statements(registry.list), statements(lambda: registry.versions("a"))
    assert many == few
    assert {v.model: v.aliases for v in registry.list().data}["a"] == ("best", "newest")
    assert [v.aliases for v in registry.versions("a")] == [("best", "newest"), (), ("champion",)]


@pytest.mark.parametrize("model", ["Square", "", "a/b", "../a", "a" * 64])
def test_a_model_has_a_name_that_fits_everywhere(
    registry: Registry, publish: Callable[..., Version], model: str
) -> None:
    with pytest.raises(Invalid, match="use lower-case letters, digits"):
        publish(model)


def test_the_counter_does_not_go_back(
    database: Database, registry: Registry, publish: Callable[..., Version]
) -> None:
    """The number comes from the model's row, not from the versions that happen to be left."""
    publish()
    with database.begin() as session:
        session.execute(update(ModelRow).values(last_version=41))
    assert publish().version == 42
