"""Backups of a real installation that changes meanwhile, and archives that were tampered with."""

import io
import json
import sqlite3
import tarfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core.access.keys import Keys, Scope
from core.context import Context, open_context
from core.exceptions import InvalidSetting
from core.jobs.jobs import Job, JobStatus
from core.jobs.specs import ChunkSpec
from core.maintenance.backup import BackupFailed, artifact_keys, back_up
from core.maintenance.restore import restore
from core.settings import load_settings
from tests.core.conftest import claimed, predict_spec, queue

ROUNDS = 12


@pytest.fixture
def backup(context: Context, tmp_path: Path) -> Path:
    """Of two versions and a job that waits."""
    publish(context, "one", b"first")
    publish(context, "one", b"second")
    queue(context, "waits")
    back_up(context.settings, tmp_path / "good.tar")
    return tmp_path / "good.tar"


def publish(context: Context, model: str, content: bytes) -> None:
    """As a worker does: the artifact, then the row."""
    claim = claimed(context.jobs, queue(context, model))
    folder = context.settings.data_dir / f"made-{claim.job_id}"
    folder.mkdir()
    for name in ("model.json", "weights.safetensors"):
        (folder / name).write_bytes(content)
    context.registry.publish(claim, model, folder, {}, "ds_any")


def publish_a_part(context: Context, folder: Path) -> Job:
    """An offline prediction of which the first chunk is done."""
    queue(context, "other")
    dataset = context.datasets.list().data[0].id
    whole = context.jobs.create_batch(predict_spec(dataset), 35)
    first = context.jobs.parts(whole.id)[0]
    (folder / "part").write_bytes(b"parquet")
    spec = ChunkSpec.model_validate(first.spec)
    context.results.publish(claimed(context.jobs, first.id), spec, folder / "part")
    return whole


def churn(context: Context, model: str, stop: threading.Event) -> None:
    """Publish, and delete all but the two newest, as fast as it goes."""
    while not stop.is_set():
        publish(context, model, model.encode() * 10_000)
        versions = context.registry.versions(model)
        if len(versions) > 2:
            context.registry.delete_version(model, versions[-1].version)


def test_backups_under_publications_are_whole(context: Context, tmp_path: Path) -> None:
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
    with closing(open_context(load_settings(data_dir=tmp_path / f"restored-{index}"))) as again:
        for model in ("a", "b"):
            for version in again.registry.versions(model):
                weights = again.registry.path(version) / "weights.safetensors"
                assert weights.read_bytes() == model.encode() * 10_000


def test_what_is_restored_is_what_was(context: Context, tmp_path: Path) -> None:
    publish(context, "one", b"weights")
    _, text = Keys(context.database).create("me", Scope.ADMIN)
    running, cancelling, waiting = (queue(context, "more") for _ in range(3))
    claim = claimed(context.jobs, running)
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    for content in (b"older", b"newer"):
        (checkpoint / "run.safetensors").write_bytes(content)
        context.checkpoints.save(claim, checkpoint)
    claimed(context.jobs, cancelling)
    context.jobs.cancel(cancelling)
    whole = publish_a_part(context, tmp_path)
    archive = tmp_path / "all.tar"
    back_up(context.settings, archive)
    assert text not in archive.read_bytes().decode("latin-1")
    assert archive.stat().st_mode & 0o777 == 0o600
    restore(archive, tmp_path / "again")
    with closing(open_context(load_settings(data_dir=tmp_path / "again"))) as again:
        assert [key.name for key in Keys(again.database).valid()] == ["me"]
        assert again.jobs.get(running).status is JobStatus.QUEUED
        assert again.jobs.get(cancelling).status is JobStatus.CANCELLING  # until its lease ends
        assert again.jobs.get(waiting).status is JobStatus.QUEUED
        assert again.checkpoints.fetch(running, tmp_path / "fetched")
        assert (tmp_path / "fetched" / "run.safetensors").read_bytes() == b"newer"
        assert again.jobs.parts(whole.id)[0].status is JobStatus.SUCCEEDED
        assert again.workers.list() == []
        assert again.settings.data_dir.stat().st_mode & 0o777 == 0o700
        for key in artifact_keys(again.settings.data_dir / "credence.db"):
            assert again.store.exists(key)


def test_a_lost_artifact_is_named(context: Context, tmp_path: Path) -> None:
    publish(context, "one", b"weights")
    key = context.registry.get("one").artifact_key
    context.store.delete(key)
    with pytest.raises(BackupFailed, match=key):
        back_up(context.settings, tmp_path / "none.tar")
    assert {path.name for path in tmp_path.iterdir()} == {"data"}


def test_nothing_is_overwritten(backup: Path, context: Context, tmp_path: Path) -> None:
    with pytest.raises(BackupFailed, match="exists already"):
        back_up(context.settings, backup)
    with pytest.raises(BackupFailed, match="is not empty"):
        restore(backup, context.settings.data_dir)
    (tmp_path / "empty").mkdir()
    restore(backup, tmp_path / "empty")
    settings = load_settings(data_dir=tmp_path, database_url="postgresql://h/n")
    with pytest.raises(BackupFailed, match="operations"):
        back_up(settings, tmp_path / "none.tar")


def test_a_newer_releases_backup_is_refused(context: Context, tmp_path: Path) -> None:
    with closing(sqlite3.connect(context.settings.data_dir / "credence.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE schema_compatibility SET compatible_from = '9999'")
        connection.commit()
    back_up(context.settings, tmp_path / "newer.tar")
    with pytest.raises(InvalidSetting, match="9999"):
        restore(tmp_path / "newer.tar", tmp_path / "again")
    assert not (tmp_path / "again").exists()


Member = tuple[tarfile.TarInfo, bytes]
Members = dict[str, Member]
Change = Callable[[Members, dict[str, Any]], None]


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


def _weights(members: Members) -> str:
    return next(name for name in members if name.endswith("weights.safetensors"))


def _flip(members: Members, _: dict[str, Any]) -> None:
    info, content = members[_weights(members)]
    members[info.name] = (info, bytes([content[0] ^ 1]) + content[1:])


def _drop(members: Members, _: dict[str, Any]) -> None:
    del members[_weights(members)]


def _forget(start: str) -> Change:
    def change(_: Members, manifest: dict[str, Any]) -> None:
        manifest["files"] = [f for f in manifest["files"] if not f["name"].startswith(start)]

    return change


def _link(members: Members, _: dict[str, Any]) -> None:
    name = _weights(members)
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    members[name] = (link, b"")


def _rename(to: str) -> Change:
    def change(members: Members, manifest: dict[str, Any]) -> None:
        name = _weights(members)
        info, content = members.pop(name)
        info.name = to
        members[to] = (info, content)
        for file in manifest["files"]:
            file["name"] = to if file["name"] == name else file["name"]

    return change


def _new_format(_: Members, manifest: dict[str, Any]) -> None:
    manifest["format"] = 2


NO_NAME = "is not a name that a backup"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_flip, "SHA-256"),
        (_drop, "it has no 'artifacts/models/one/"),
        (_forget("artifacts/m"), "which its database names"),
        (_forget("credence.db"), "it has no database"),
        (_link, "is not the file that"),
        (_rename("../outside"), NO_NAME),
        (_rename("/tmp/credence-outside"), NO_NAME),
        (_rename("artifacts/../../outside"), NO_NAME),
        (_rename("artifacts/.incoming/x"), NO_NAME),
        (_rename("queue/messages/x"), NO_NAME),
        (_new_format, "not of this release"),
    ],
)
def test_tampering_is_noticed(backup: Path, tmp_path: Path, change: Change, message: str) -> None:
    path = tampered(backup, change)
    with pytest.raises(BackupFailed, match=message):
        restore(path, tmp_path / "again")
    assert {each.name for each in tmp_path.iterdir()} == {"data", "good.tar", "tampered.tar"}
    assert not Path("/tmp/credence-outside").exists()


def test_what_is_no_archive_restores_nothing(backup: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.tar"
    for size in (0, 100, 5000):
        path.write_bytes(backup.read_bytes()[:size])
        with pytest.raises(BackupFailed):
            restore(path, tmp_path / "again")
        assert not (tmp_path / "again").exists()
