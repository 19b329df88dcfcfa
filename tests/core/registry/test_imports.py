"""Versions from elsewhere in the registry: whose they are, what they take, what a crash leaves."""

from pathlib import Path
from typing import Any

import pytest

from core.access.callers import Quota
from core.database.database import Database
from core.exceptions import QuotaExceeded
from core.registry.registry import Registry, import_prefix
from core.storage import ArtifactStore
from core.storage.orphans import Orphans
from tests.core.conftest import owner

SIZE = 2**40  # more than 32 bits


def description(**origin: Any) -> dict[str, Any]:
    return {"imported": {"origin": origin or None, "bytes": SIZE}}


def registry_of(database: Database, store: ArtifactStore, name: str, times: int = 9) -> Registry:
    return Registry(database, store, owner(name, quota=Quota(times * SIZE)))


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
