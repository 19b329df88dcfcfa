"""Orphans: files in the store without a row, left by a crash between store and database.

The key of a job's file contains the number of the attempt. Once that attempt has lost the job, it
can commit nothing more (`core.jobs.transitions`), so its files without a row are orphans at once.
Files of data sets and imported versions have no attempt. They are stored before their row, so a new
file may still get its row. Files of jobs that are not in this database, or with another database's
identifier, belong to others and are not touched.

The store is listed before the rows are read, and claims are read before published files, so that
files published in between are seen.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.database.database import Database
from core.database.schema import DatasetRow, JobRow, Json, VersionRow
from core.database.statements import installation_id
from core.jobs.transitions import CLAIMED, JobStatus
from core.registry.registry import import_prefix
from core.storage import ArtifactStore

_MODEL = re.compile(r"(?P<job>job_[0-9a-f]+)-(?P<attempt>\d+)")
_PART = re.compile(r"(?P<part>\d+|job_[0-9a-f]+)-(?P<attempt>\d+)\.(parquet|safetensors)")
_STOPPED = {JobStatus.FAILED, JobStatus.CANCELLED}


@dataclass(frozen=True)
class Orphans:
    """Finds the keys of orphans. The caller removes them."""

    database: Database
    store: ArtifactStore

    def find(self) -> Iterator[str]:
        """Keys of jobs' files that will never have a row."""
        yield from self._models()
        yield from self._checkpoints()
        yield from self._results()

    def find_rowless(self) -> list[str]:
        """Keys of data sets and imported versions that have no row, or not yet."""
        return [*self._datasets(), *self._imports()]

    def _datasets(self) -> list[str]:
        keys = self._keys("datasets")
        with self.database.begin() as session:
            mine = f"datasets/{installation_id(session)}-"
            known = set(session.scalars(select(DatasetRow.artifact_key)))
            known |= set(session.scalars(select(DatasetRow.source_key)))
        return [key for key in keys if key.startswith(mine) and key not in known]

    def _imports(self) -> list[str]:
        keys = [key for folder in self._keys("models") for key in self._keys(folder)]
        with self.database.begin() as session:
            mine = import_prefix(session)
            known = set(session.scalars(select(VersionRow.artifact_key)))
        is_mine = (key for key in keys if key.rpartition("/")[2].startswith(mine))
        return [key for key in is_mine if key not in known]

    def _models(self) -> list[str]:
        found = {}
        for folder in self._keys("models"):
            for key in self._keys(folder):
                if match := _MODEL.fullmatch(key.rpartition("/")[2]):
                    found[key] = match["job"], int(match["attempt"])
        with self.database.read() as session:
            claimed = select(JobRow.id, JobRow.attempt).where(JobRow.status.in_(CLAIMED))
            busy = {(row.id, row.attempt) for row in session.execute(claimed)}
            published = set(session.scalars(select(VersionRow.artifact_key)))
            mine = _known_jobs(session, {job for job, _ in found.values()})
        return [
            key
            for key, (job, attempt) in found.items()
            if job in mine and (job, attempt) not in busy and key not in published
        ]

    def _checkpoints(self) -> list[str]:
        """Checkpoint folders of jobs that have succeeded or cannot be resumed."""
        keys = self._keys("checkpoints")
        with self.database.read() as session:
            return [key for key in keys if not _may_continue(session, key.rpartition("/")[2])]

    def _results(self) -> Iterator[str]:
        for folder in self._keys("results"):
            keys = self._keys(folder)
            with self.database.read() as session:
                known = _parts(session, folder.rpartition("/")[2])
            if known is None:
                continue
            for key in keys:
                match = _PART.fullmatch(key.rpartition("/")[2])
                if match and (match["part"], int(match["attempt"])) not in known:
                    yield key

    def _keys(self, folder: str) -> list[str]:
        return [f"{folder}/{name}" for name in self.store.children(folder)]


def _may_continue(session: Session, job_id: str) -> bool:
    job = session.scalars(select(JobRow).where(JobRow.id == job_id)).one_or_none()
    if job is None:  # of another database
        return True
    return job.status != JobStatus.SUCCEEDED and not _is_not_resumable(session, job)


def _known_jobs(session: Session, ids: set[str]) -> set[str]:
    """The jobs in this database. By mistake, two databases may share a store."""
    found: set[str] = set()
    for some in _pieces(sorted(ids)):
        found |= set(session.scalars(select(JobRow.id).where(JobRow.id.in_(some))))
    return found


def _pieces(ids: list[str], size: int = 500) -> Iterator[list[str]]:
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def _parts(session: Session, job_id: str) -> set[tuple[str, int]] | None:
    """(part, attempt) of each file that belongs to a result, or still may.

    A part is the number of a chunk as in its file's name, or the id of a training.

    None if the job is not in this database.
    """
    job = session.scalars(select(JobRow).where(JobRow.id == job_id)).one_or_none()
    if job is None:
        return None
    if _is_not_resumable(session, job):
        return set()
    kept = JobRow.parent == job_id, JobRow.status.in_(CLAIMED | {JobStatus.SUCCEEDED})
    rows = session.execute(select(JobRow.id, JobRow.spec, JobRow.attempt).where(*kept))
    return {(_part(row.id, row.spec), row.attempt) for row in rows}


def _part(job_id: str, spec: Json) -> str:
    return f"{spec['chunk']:04d}" if "chunk" in spec else job_id


def _is_not_resumable(session: Session, job: JobRow) -> bool:
    """Whether the job failed or was cancelled, and its data set was deleted."""
    rows = select(DatasetRow.id).where(DatasetRow.id == job.dataset)
    return job.status in _STOPPED and session.scalars(rows).one_or_none() is None
