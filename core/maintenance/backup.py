"""A consistent backup of the embedded installation while it runs, as one tar file.

Artifacts are immutable. They are stored before a row names them, and deleted after their row. So
a snapshot of the database is taken, then the artifacts that it names are copied. If one of them is
gone, its row has been deleted meanwhile: another snapshot is taken, and its new artifacts are
copied. At the end all artifacts of the last snapshot have been copied.

artifacts/KEY/…   files of artifacts; some may have been deleted meanwhile
credence.db       the database at one moment
manifest.json     the last member: the names, sizes and SHA-256 of the backup's files
"""

import hashlib
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session, aliased

from core.clock import now
from core.database.database import opened
from core.database.schema import DatasetRow, JobRow, VersionRow
from core.exceptions import CredenceError
from core.jobs.checkpoints import checkpoints_key
from core.jobs.results import part_key
from core.jobs.specs import ChunkSpec
from core.jobs.transitions import JobStatus
from core.release import release
from core.settings import Settings
from core.storage import DirectoryStore
from core.storage.protocol import check_key
from core.storage.staging import flush

ROUNDS = 20  # most snapshots; each adds only artifacts published since the one before
DATABASE, MANIFEST, ARTIFACTS = "credence.db", "manifest.json", "artifacts"


class BackupFailed(CredenceError):
    """The backup was not written, or not restored. Nothing is left half done."""


class File(BaseModel):
    """A member of the archive."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Manifest(BaseModel):
    """The content of a backup, and the release that wrote it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal[1] = 1
    release: str
    created_at: datetime
    files: list[File]


def back_up(settings: Settings, target: Path) -> Manifest:
    """Write a backup to the new file `target`, completely or not at all.

    Raises:
        BackupFailed: the data are on a server, the file exists, or an artifact is missing.
    """
    database = sqlite_file(settings)
    if settings.bucket is not None:
        raise BackupFailed(f"artifacts are in {settings.artifact_url}: see docs/operations.md")
    if target.exists():
        raise BackupFailed(f"{target} exists already: give a new name")
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as name:
        folder = Path(name)
        partial = folder / "partial.tar"
        partial.touch(mode=0o600)
        with tarfile.open(partial, "w") as archive:
            manifest = _Writer(archive, settings.artifact_root).write(database, folder)
        flush(partial)
        partial.rename(target)
    return manifest


def sqlite_file(settings: Settings) -> Path:
    """The database's file. Raises `BackupFailed` if it does not exist or is not SQLite."""
    prefix, url = "sqlite:///", settings.sqlalchemy_url
    if not url.startswith(prefix):
        raise BackupFailed("the database is a server: see docs/operations.md for its backup")
    path = Path(url.removeprefix(prefix))
    if not path.is_file():
        raise BackupFailed(f"{path} does not exist: name the data directory with --data-dir")
    return path


class _Writer:
    """Copies artifacts into an archive, each once."""

    def __init__(self, archive: tarfile.TarFile, root: Path) -> None:
        self._archive, self._root = archive, root
        self._copied: dict[str, list[File]] = {}

    def write(self, database: Path, folder: Path) -> Manifest:
        missing: set[str] = set()
        for _ in range(ROUNDS):
            snapshot = folder / DATABASE
            snapshot.unlink(missing_ok=True)
            _snapshot(database, snapshot)
            keys = artifact_keys(snapshot)
            lost = [key for key in keys if key not in self._copied and not self._copy(key)]
            if still := missing.intersection(lost):
                raise BackupFailed(
                    f"{min(still)} is named by the database, but not stored: `credence doctor`"
                )
            if not lost:
                return self._finish(snapshot, [*keys, *self._copy_checkpoints(snapshot)])
            missing.update(lost)
        raise BackupFailed(f"what is stored changed under {ROUNDS} attempts: try again later")

    def _copy_checkpoints(self, snapshot: Path) -> list[str]:
        """Copy the newest checkpoint of each job that may continue. Returns their keys.

        No row names a checkpoint. A job without one starts from the beginning.
        """
        store, copied = DirectoryStore(self._root), []
        for folder in map(checkpoints_key, _resumable(snapshot)):
            while names := store.children(folder):
                key = f"{folder}/{names[-1]}"
                if key in self._copied or self._copy(key):
                    copied.append(key)
                    break  # otherwise a newer one has replaced it: try again
        return copied

    def _copy(self, key: str) -> bool:
        """Copy an artifact. False if it is gone."""
        path = self._root / key
        try:
            paths = sorted(path.rglob("*")) if path.is_dir() else [path]
            files = [self._add(file, artifact_name(file, self._root)) for file in paths]
        except FileNotFoundError:
            return False
        self._copied[key] = files
        return True

    def _add(self, path: Path, name: str) -> File:
        with path.open("rb") as source:
            sha256 = hashlib.file_digest(source, "sha256").hexdigest()
            source.seek(0)
            member = self._archive.gettarinfo(arcname=name, fileobj=source)
            self._archive.addfile(member, source)
        return File(name=name, size=member.size, sha256=sha256)

    def _finish(self, snapshot: Path, keys: list[str]) -> Manifest:
        files = [self._add(snapshot, DATABASE)]
        files += [file for key in keys for file in self._copied[key]]
        manifest = Manifest(release=release(), created_at=now(), files=files)
        path = snapshot.with_name(MANIFEST)
        path.write_text(manifest.model_dump_json(indent=1))
        self._add(path, MANIFEST)
        return manifest


def artifact_keys(database: Path) -> list[str]:
    """The keys of the artifacts to which rows of a database refer."""
    with _rows(database) as session:
        return [*_published(session), *_results(session)]


def _resumable(database: Path) -> list[str]:
    """The ids of trainings that may continue."""
    query = select(JobRow.id).where(JobRow.kind == "train", JobRow.status != JobStatus.SUCCEEDED)
    with _rows(database) as session:
        return list(session.scalars(query))


@contextmanager
def _rows(path: Path) -> Iterator[Session]:
    with opened(f"sqlite:///{path}") as database, database.read() as session:
        yield session


def _snapshot(database: Path, snapshot: Path) -> None:
    """Copy the pages of one moment (SQLite's online backup) while others may write."""
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(snapshot)) as copy:
        source.backup(copy)


def _published(session: Session) -> Iterator[str]:
    yield from session.scalars(select(DatasetRow.artifact_key))
    sources = select(DatasetRow.source_key).where(DatasetRow.source_key.is_not(None)).distinct()
    yield from (key for key in session.scalars(sources) if key is not None)
    yield from session.scalars(select(VersionRow.artifact_key))


def _results(session: Session) -> Iterator[str]:
    """The files of finished chunks whose job has succeeded or can be resumed."""
    parent = aliased(JobRow)
    needed = or_(
        exists().where(parent.id == JobRow.parent, parent.status == JobStatus.SUCCEEDED),
        exists().where(DatasetRow.id == JobRow.dataset),
    )
    done = JobRow.kind == "chunk", JobRow.status == JobStatus.SUCCEEDED, needed
    for spec, attempt in session.execute(select(JobRow.spec, JobRow.attempt).where(*done)):
        yield part_key(ChunkSpec.model_validate(spec), attempt)


def artifact_name(path: Path, root: Path) -> str:
    """The member's name for a file of the artifact store."""
    return f"{ARTIFACTS}/{path.relative_to(root).as_posix()}"


def path_in(folder: Path, file: File) -> Path:
    """The path of a member under `folder`. Raises `BackupFailed` for an unknown name."""
    top, _, key = file.name.partition("/")
    if file.name == DATABASE:
        return folder / DATABASE
    try:
        if top == ARTIFACTS:
            return folder / ARTIFACTS / PurePosixPath(check_key(key))
    except ValueError:
        pass
    raise BackupFailed(f"{file.name!r} is not a name that a backup of Credence has")
