"""Backups of a real installation that changes meanwhile, and archives that were tampered with."""

import io
import json
import sqlite3
import tarfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core.access.keys import Keys, Scope
from core.context import Context, open_context
from core.exceptions import InvalidSetting
from core.jobs.jobs import JobStatus, TrainSpec
from core.jobs.specs import ChunkSpec
from core.maintenance.backup import BackupFailed, artifact_keys, back_up
from core.maintenance.restore import restore
from core.settings import load_settings
from models.config import ModelConfig
from tests.core.conftest import predict_spec

ROUNDS = 12


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    opened = open_context(load_settings(data_dir=tmp_path / "data"))
    yield opened
    opened.close()


@pytest.fixture
def backup(context: Context, tmp_path: Path) -> Path:
    """Of two versions and a job that waits."""
    publish(context, "one", b"first")
    publish(context, "one", b"second")
    queue(context, "waits")
    back_up(context.settings, tmp_path / "good.tar")
    return tmp_path / "good.tar"


def queue(context: Context, model: str) -> str:
    dataset, _ = context.datasets.add_columns("small", {"x": [1.0, 2.0], "y": [1.0, 4.0]})
    spec = TrainSpec(model=model, dataset=dataset.id, config=ModelConfig(target="y"))
    return context.jobs.create(spec).id


def publish(context: Context, model: str, content: bytes) -> None:
    """As a worker does: the artifact, then the row."""
    claim = context.jobs.claim(queue(context, model), "w", lease_seconds=60)
    assert claim is not None
    folder = context.settings.data_dir / f"made-{claim.job_id}"
    folder.mkdir()
    for name in ("model.json", "weights.safetensors"):
        (folder / name).write_bytes(content)
    context.registry.publish(claim, model, folder, {}, "ds_any")


def restored(file: Path, folder: Path) -> Context:
    restore(file, folder)
    return open_context(load_settings(data_dir=folder))


def churn(context: Context, model: str, stop: threading.Event) -> None:
    """Publish, and delete all but the two newest, as fast as it goes."""
    while not stop.is_set():
        publish(context, model, model.encode() * 10_000)
        versions = context.registry.versions(model)
        if len(versions) > 2:
            context.registry.delete_version(model, versions[-1].version)


def test_every_backup_under_publications_and_deletions_is_whole(
    context: Context, tmp_path: Path
) -> None:
    """`restore` compares every file with its checksum, and every row with what is stored."""
    stop = threading.Event()
    with ThreadPoolExecutor(2) as threads:
        churns = [threads.submit(churn, context, model, stop) for model in ("a", "b")]
        try:
            for index in range(ROUNDS):
                back_up(context.settings, tmp_path / f"{index}.tar")
                restore(tmp_path / f"{index}.tar", tmp_path / f"restored-{index}")
        finally:
            stop.set()
    assert [churned.result() for churned in churns] == [None, None]
    assert list(tmp_path.glob(".*")) == []  # nothing is left beside them
    again = open_context(load_settings(data_dir=tmp_path / f"restored-{ROUNDS - 1}"))
    for model in ("a", "b"):
        for version in again.registry.versions(model):
            weights = again.registry.path(version) / "weights.safetensors"
            assert weights.read_bytes() == model.encode() * 10_000
    again.close()


def test_what_is_restored_is_what_was(context: Context, tmp_path: Path) -> None:
    publish(context, "one", b"weights")
    _, text = Keys(context.database).create("me", Scope.ADMIN)
    running, cancelling, waiting = (queue(context, "more") for _ in range(3))
    claim = context.jobs.claim(running, "w", lease_seconds=3600)
    assert claim is not None
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    for content in (b"older", b"newer"):
        (checkpoint / "run.safetensors").write_bytes(content)
        context.checkpoints.save(claim, checkpoint)
    context.jobs.claim(cancelling, "w", lease_seconds=3600)
    context.jobs.cancel(cancelling)
    chunks = context.jobs.create_batch(predict_spec(context.datasets.list().data[0].id), 35)
    part = context.jobs.claim(context.jobs.parts(chunks.id)[0].id, "w", lease_seconds=3600)
    assert part is not None
    (tmp_path / "part").write_bytes(b"parquet")
    spec = ChunkSpec.model_validate(context.jobs.parts(chunks.id)[0].spec)
    context.results.publish(part, spec, tmp_path / "part")
    back_up(context.settings, tmp_path / "all.tar")

    again = restored(tmp_path / "all.tar", tmp_path / "again")
    try:
        assert [key.name for key in Keys(again.database).valid()] == ["me"]
        assert text not in (tmp_path / "all.tar").read_bytes().decode("latin-1")
        assert again.jobs.get(running).status is JobStatus.QUEUED
        assert again.jobs.get(cancelling).status is JobStatus.CANCELLING  # until its lease ends
        assert again.jobs.get(waiting).status is JobStatus.QUEUED
        assert again.jobs.events(running)[-1].data["reason"] == "restored from a backup"
        assert again.checkpoints.fetch(running, tmp_path / "fetched")
        assert (tmp_path / "fetched" / "run.safetensors").read_bytes() == b"newer"
        assert again.jobs.parts(chunks.id)[0].status is JobStatus.SUCCEEDED
        assert again.workers.list() == []
        assert again.settings.data_dir.stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "all.tar").stat().st_mode & 0o777 == 0o600
        for key in artifact_keys(again.settings.data_dir / "credence.db"):
            assert again.store.exists(key)
    finally:
        again.close()


def test_results_that_went_with_their_data_set_are_not_missed(
    context: Context, tmp_path: Path
) -> None:
    dataset, _ = context.datasets.add_columns("small", {"x": [1.0, 2.0], "y": [1.0, 4.0]})
    whole = context.jobs.create_batch(predict_spec(dataset.id), 35)
    part = context.jobs.claim(context.jobs.parts(whole.id)[0].id, "w", lease_seconds=3600)
    assert part is not None
    (tmp_path / "part").write_bytes(b"parquet")
    spec = ChunkSpec.model_validate(context.jobs.parts(whole.id)[0].spec)
    context.results.publish(part, spec, tmp_path / "part")
    context.jobs.cancel(whole.id)
    context.datasets.delete(dataset.id)
    back_up(context.settings, tmp_path / "all.tar")
    restore(tmp_path / "all.tar", tmp_path / "again")


def test_a_lost_artifact_is_named(context: Context, tmp_path: Path) -> None:
    publish(context, "one", b"weights")
    key = context.registry.get("one").artifact_key
    context.store.delete(key)
    with pytest.raises(BackupFailed, match=key):
        back_up(context.settings, tmp_path / "none.tar")
    assert not (tmp_path / "none.tar").exists()
    assert list(tmp_path.glob(".*")) == []


def test_nothing_is_overwritten(backup: Path, context: Context, tmp_path: Path) -> None:
    with pytest.raises(BackupFailed, match="exists already"):
        back_up(context.settings, backup)
    with pytest.raises(BackupFailed, match="is not empty"):
        restore(backup, context.settings.data_dir)
    (tmp_path / "empty").mkdir()
    restore(backup, tmp_path / "empty")


def test_servers_and_buckets_have_their_own_ways(tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path, database_url="postgresql://h/n")
    with pytest.raises(BackupFailed, match="operations"):
        back_up(settings, tmp_path / "none.tar")


def test_a_newer_releases_backup_is_refused(context: Context, tmp_path: Path) -> None:
    with closing(sqlite3.connect(context.settings.data_dir / "credence.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE schema_compatibility SET compatible_from = '9999'")
        connection.commit()
    back_up(context.settings, tmp_path / "newer.tar")
    with pytest.raises(InvalidSetting, match="works from revision 9999 on"):
        restore(tmp_path / "newer.tar", tmp_path / "again")
    assert not (tmp_path / "again").exists()


Member = tuple[tarfile.TarInfo, bytes]
Change = Callable[[dict[str, Member], dict[str, Any]], None]


def tampered(backup: Path, change: Change) -> Path:
    """The archive with its members and its manifest changed."""
    with tarfile.open(backup) as archive:
        members = {}
        for info in archive:
            file = archive.extractfile(info)
            members[info.name] = (info, file.read() if file else b"")
    manifest = json.loads(members.pop("manifest.json")[1])
    change(members, manifest)
    path = backup.with_name("tampered.tar")
    with tarfile.open(path, "w") as archive:
        text = json.dumps(manifest).encode()
        for info, content in [*members.values(), (tarfile.TarInfo("manifest.json"), text)]:
            info.size = len(content) if info.isreg() else 0
            archive.addfile(info, io.BytesIO(content))
    return path


def _weights(members: dict[str, Member]) -> str:
    return next(name for name in members if name.endswith("weights.safetensors"))


def _flip(members: dict[str, Member], _: dict[str, Any]) -> None:
    info, content = members[_weights(members)]
    members[info.name] = (info, bytes([content[0] ^ 1]) + content[1:])


def _drop(members: dict[str, Member], _: dict[str, Any]) -> None:
    del members[_weights(members)]


def _forget(_: dict[str, Member], manifest: dict[str, Any]) -> None:
    manifest["files"] = [f for f in manifest["files"] if not f["name"].startswith("artifacts/m")]


def _no_database(_: dict[str, Member], manifest: dict[str, Any]) -> None:
    manifest["files"] = [f for f in manifest["files"] if f["name"] != "credence.db"]


def _link(members: dict[str, Member], _: dict[str, Any]) -> None:
    name = _weights(members)
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    members[name] = (link, b"")


def _rename(to: str) -> Change:
    def change(members: dict[str, Member], manifest: dict[str, Any]) -> None:
        name = _weights(members)
        info, content = members.pop(name)
        info.name = to
        members[to] = (info, content)
        for file in manifest["files"]:
            file["name"] = to if file["name"] == name else file["name"]

    return change


def _new_format(_: dict[str, Member], manifest: dict[str, Any]) -> None:
    manifest["format"] = 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_flip, "damaged: its SHA-256"),
        (_drop, "it has no 'artifacts/models/one/"),
        (_forget, "which its database names"),
        (_no_database, "it has no database"),
        (_link, "is not the file that"),
        (_rename("../outside"), "is not a name that a backup"),
        (_rename("/tmp/credence-outside"), "is not a name that a backup"),
        (_rename("artifacts/../../outside"), "is not a name that a backup"),
        (_rename("artifacts/.incoming/x"), "is not a name that a backup"),
        (_rename("queue/messages/x"), "is not a name that a backup"),
        (_new_format, "not of this release"),
    ],
)
def test_a_tampered_archive_restores_nothing(
    backup: Path, tmp_path: Path, change: Change, message: str
) -> None:
    path = tampered(backup, change)
    with pytest.raises(BackupFailed, match=message):
        restore(path, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert not (tmp_path / "outside").exists()
    assert not Path("/tmp/credence-outside").exists()
    assert list(tmp_path.glob(".again*")) == []


@pytest.mark.parametrize("size", [0, 100, 5000])
def test_what_is_no_archive_restores_nothing(backup: Path, tmp_path: Path, size: int) -> None:
    path = tmp_path / "cut.tar"
    path.write_bytes(backup.read_bytes()[:size])
    with pytest.raises(BackupFailed):
        restore(path, tmp_path / "again")
    assert not (tmp_path / "again").exists()
