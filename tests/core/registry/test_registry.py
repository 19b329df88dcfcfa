"""Versions: published whole or not at all, numbered once, with aliases that move."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.access.callers import Quota
from core.database.database import Database
from core.exceptions import LostClaim, NotFound, QuotaExceeded
from core.jobs.jobs import Claim, Jobs
from core.jobs.specs import TrainSpec
from core.registry.registry import Registry, Version, import_prefix
from core.storage import ArtifactStore
from core.storage.orphans import Orphans
from tests.core.conftest import at_once, claimed, owner

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
        return claimed(jobs, jobs.create(spec).id)

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
    fresh = claimed(jobs, stale.job_id, "worker-2")
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
    with pytest.raises(LostClaim, match="cancelled"):
        registry.publish(mine, "square", directory, DESCRIPTION, "ds_1", "champion")
    assert jobs.get(mine.job_id).status == "cancelled"
    assert artifacts(store) == []
    assert registry.list().data == []


def test_numbers_are_never_used_again(
    registry: Registry, publish: Callable[..., Version], store: ArtifactStore
) -> None:
    publish()
    registry.delete_version("square", publish().version)
    assert publish().version == 3
    publish("cube", alias="champion")
    registry.set_alias("square", "champion", 3)
    registry.delete_model("square")
    assert artifacts(store) == []
    assert [version.model for version in registry.list().data] == ["cube"]
    assert registry.get("cube", "champion").version == 1
    for gone in (registry.versions, registry.delete_model):
        with pytest.raises(NotFound):
            gone("square")
    assert publish().version == 4


def test_versions_published_at_once_get_different_numbers(
    registry: Registry, claim: Callable[[], Claim], directory: Path
) -> None:
    claims = [claim() for _ in range(6)]

    def publish(index: int) -> int:
        mine = claims[index]
        return registry.publish(mine, "square", directory, DESCRIPTION, "ds_1", "new").version

    assert sorted(at_once(publish, 6)) == [1, 2, 3, 4, 5, 6]
    assert registry.get("square", "new").version == 6


SIZE = 2**40  # more than 32 bits


def description(**origin: Any) -> dict[str, Any]:
    return {"imported": {"origin": origin or None, "bytes": SIZE}}


def registry_of(database: Database, store: ArtifactStore, name: str, times: int = 9) -> Registry:
    return Registry(database, store, owner(name, quota=Quota(times * SIZE)))


def test_its_bytes_count(database: Database, store: ArtifactStore, artifact: Path) -> None:
    ours = registry_of(database, store, "we", times=2)
    for name in ("a", "b"):
        ours.add(name, artifact, description())
    with pytest.raises(QuotaExceeded, match="imported"):
        ours.add("a", artifact, description())
    assert len(store.children("models/a")) == 1, "nothing stays of what was refused"
    ours.delete_model("b")
    assert ours.add("a", artifact, description()).version == 2


def test_what_a_crash_leaves_is_found_by_this_database_alone(
    database: Database, store: ArtifactStore, artifact: Path
) -> None:
    registry_of(database, store, "we").add("square", artifact, description())
    with database.begin() as session:
        mine = f"models/square/{import_prefix(session)}0123"
    store.put_directory(mine, artifact)
    store.put_directory("models/square/import-000000000000-0123", artifact)
    orphans = Orphans(database, store)
    assert orphans.find_rowless() == [mine]
    assert list(orphans.find()) == [], "it may be on its way"
