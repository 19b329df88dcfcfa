"""Versions from elsewhere in the registry: whose they are, what they take, what a crash leaves."""

from pathlib import Path
from typing import Any

import pytest

from core.access.audit import Audit
from core.access.callers import Quota
from core.database.database import Database
from core.exceptions import NotFound, NotOwner, QuotaExceeded
from core.registry.registry import Registry, import_prefix
from core.storage import ArtifactStore
from core.storage.orphans import Orphans
from tests.core.conftest import owner

SIZE = 2**40  # more than 32 bits


def description(**origin: Any) -> dict[str, Any]:
    return {"imported": {"origin": origin or None, "bytes": SIZE}}


def registry_of(database: Database, store: ArtifactStore, name: str, times: int = 9) -> Registry:
    return Registry(database, store, owner(name, quota=Quota(times * SIZE)))


def test_a_version_is_its_importers_and_tells_its_origin(
    database: Database, store: ArtifactStore, artifact: Path
) -> None:
    ours, theirs = (registry_of(database, store, owner) for owner in ("we", "they"))
    made = ours.add("square", artifact, description(dataset="ds_1", job="job_1"), "champion")
    assert (made.owner, made.version, made.aliases) == ("we", 1, ("champion",))
    assert (made.dataset, made.job) == ("ds_1", "job_1")
    assert ours.add("square", artifact, description()).version == 2
    with pytest.raises(NotOwner):
        theirs.add("square", artifact, description())
    with pytest.raises(NotFound):
        theirs.get("square")
    lines = [line for line in Audit(database).list().data if line.action == "version.import"]
    assert [(line.actor, line.object) for line in lines] == [("we", "square/2"), ("we", "square/1")]


def test_its_bytes_count_until_it_is_deleted(
    database: Database, store: ArtifactStore, artifact: Path
) -> None:
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
