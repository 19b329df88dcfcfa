"""Restores a backup into an empty directory, which becomes a data directory.

The archive is not trusted. Only members in the manifest are read, each must match its checksum, and
all files are written inside the directory.
"""

import hashlib
import tarfile
import tempfile
from pathlib import Path
from typing import IO

from pydantic import ValidationError
from sqlalchemy import delete, select, text

from core.database.database import migrate, opened
from core.database.schema import JobRow, WorkerRow
from core.jobs.transitions import JobStatus, requeue
from core.maintenance.backup import (
    ARTIFACTS,
    DATABASE,
    MANIFEST,
    BackupFailed,
    File,
    Manifest,
    artifact_keys,
    path_in,
)
from core.storage.staging import flush

CHUNK_BYTES = 2**20
MAX_MANIFEST_BYTES = 2**28  # a million files


def restore(source: Path, data_dir: Path) -> Manifest:
    """Restore a backup completely or not at all.

    Running jobs are queued again, and continue from their checkpoints.

    Raises:
        BackupFailed: the directory is not empty, or the file is not a complete backup.
        InvalidSetting: a later release wrote it, with a schema that this one cannot use.
    """
    if data_dir.exists() and (not data_dir.is_dir() or any(data_dir.iterdir())):
        raise BackupFailed(f"{data_dir} is not empty: give an empty directory or a new name")
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{data_dir.name}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=data_dir.parent) as name:
        folder = Path(name) / "data"
        folder.mkdir(mode=0o700)
        try:
            with tarfile.open(source, "r:") as archive:
                manifest = _extract(archive, folder)
        except (OSError, tarfile.TarError) as error:
            raise BackupFailed(f"{source} cannot be read: {error}") from error
        _prepare(folder)
        flush(folder)
        folder.rename(data_dir)  # also replaces an empty directory
    return manifest


def _extract(archive: tarfile.TarFile, folder: Path) -> Manifest:
    manifest = _manifest(archive)
    for file in manifest.files:
        path = path_in(folder, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        with _open(archive, file.name, file.size) as member, path.open("xb") as copy:
            _copy(member, copy, file)
    return manifest


def _manifest(archive: tarfile.TarFile) -> Manifest:
    with _open(archive, MANIFEST) as member:
        content = member.read(MAX_MANIFEST_BYTES)
    try:
        return Manifest.model_validate_json(content)
    except ValidationError as error:
        raise BackupFailed(f"its {MANIFEST} is not of this release: {error}") from error


def _open(archive: tarfile.TarFile, name: str, size: int | None = None) -> IO[bytes]:
    """The bytes of a member that is a plain file, not a link."""
    try:
        member = archive.getmember(name)
    except KeyError:
        raise BackupFailed(f"it has no {name!r}: it is not a backup, or not complete") from None
    if not member.isreg() or (size is not None and member.size != size):
        raise BackupFailed(f"{name!r} in it is not the file that its {MANIFEST} describes")
    content = archive.extractfile(member)
    assert content is not None  # it is a regular file
    return content


def _copy(member: IO[bytes], copy: IO[bytes], file: File) -> None:
    sha256 = hashlib.sha256()
    while chunk := member.read(CHUNK_BYTES):
        sha256.update(chunk)
        copy.write(chunk)
    if sha256.hexdigest() != file.sha256:
        raise BackupFailed(f"{file.name!r} is damaged: its SHA-256 is not that of {MANIFEST}")


def _prepare(folder: Path) -> None:
    """Migrate and check the database, and queue its running jobs again."""
    path = folder / DATABASE
    if not path.is_file():
        raise BackupFailed("it has no database: it is not a backup")
    with opened(f"sqlite:///{path}") as database:
        migrate(database)
        with database.begin() as session:
            session.execute(delete(WorkerRow))
            ran = JobRow.status == JobStatus.RUNNING, JobRow.worker.is_not(None)
            for job_id in session.scalars(select(JobRow.id).where(*ran)).all():
                requeue(session, job_id, {JobStatus.RUNNING}, "restored from a backup")
        with database.read() as session:
            problems = session.scalars(text("PRAGMA quick_check(1)")).all()
    if list(problems) != ["ok"]:
        raise BackupFailed(f"its database is damaged: {problems[0]}")
    for key in artifact_keys(path):
        if not (folder / ARTIFACTS / key).exists():
            raise BackupFailed(f"it has no {key!r}, which its database names: it is not complete")
