"""Files in the store that no row refers to, left by a crash between store and database.

Files that a job publishes have its attempt's number in their key. Once another attempt, or none,
has the job, that attempt commits nothing more (`core.jobs.transitions`), so files without a row are
orphans however young they are. Files of data sets and imported versions have no attempt. They are
stored before their row, so one without a row may be about to get it. Files of jobs that this
database does not have, or with another database's identifier, belong to others and are left alone.

The store is listed before the rows are read, and claims are read before published files, so that
what is published in between is seen.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.database.database import Database
from core.database.schema import DatasetRow, JobRow, VersionRow
from core.database.statements import installation_id
from core.jobs.transitions import CLAIMED, JobStatus
from core.registry.registry import import_prefix
from core.storage import ArtifactStore

_MODEL = re.compile(r"(?P<job>job_[0-9a-f]+)-(?P<attempt>\d+)")
_PART = re.compile(r"(?P<chunk>\d+)-(?P<attempt>\d+)\.parquet")
_STOPPED = {JobStatus.FAILED, JobStatus.CANCELLED}


@dataclass(frozen=True)
class Orphans:
    """Finds the keys of orphans. The caller removes them."""

    database: Database
    store: ArtifactStore

    def find(self) -> Iterator[str]:
        """Files of jobs that no row will ever refer to."""
        yield from self._models()
        yield from self._checkpoints()
        yield from self._results()

    def find_rowless(self) -> list[str]:
        """Files of data sets and imported versions that have no row, or none yet."""
        return [*self._datasets(), *self._imports()]

    def _datasets(self) -> list[str]:
        keys = self._keys("datasets")
        with self.database.begin() as session:
            mine = f"datasets/{installation_id(session)}-"
            known = set(session.scalars(select(DatasetRow.artifact_key)))
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
        """Folders of checkpoints of jobs that are done or that nobody can resume."""
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
                if match and (int(match["chunk"]), int(match["attempt"])) not in known:
                    yield key

    def _keys(self, folder: str) -> list[str]:
        return [f"{folder}/{name}" for name in self.store.children(folder)]


def _may_continue(session: Session, job_id: str) -> bool:
    job = session.scalars(select(JobRow).where(JobRow.id == job_id)).one_or_none()
    if job is None:  # another database's
        return True
    return job.status != JobStatus.SUCCEEDED and not _is_not_resumable(session, job)


def _known_jobs(session: Session, ids: set[str]) -> set[str]:
    """Those that are in this database: by mistake, two databases may share a store."""
    found: set[str] = set()
    for some in _pieces(sorted(ids)):
        found |= set(session.scalars(select(JobRow.id).where(JobRow.id.in_(some))))
    return found


def _pieces(ids: list[str], size: int = 500) -> Iterator[list[str]]:
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def _parts(session: Session, job_id: str) -> set[tuple[int, int]] | None:
    """The chunks whose files belong to a result, or may yet, each with its attempt.

    None without such a job.
    """
    whole = session.scalars(select(JobRow).where(JobRow.id == job_id)).one_or_none()
    if whole is None:  # another database's
        return None
    if _is_not_resumable(session, whole):
        return set()
    kept = JobRow.parent == job_id, JobRow.status.in_(CLAIMED | {JobStatus.SUCCEEDED})
    rows = session.execute(select(JobRow.spec, JobRow.attempt).where(*kept))
    return {(row.spec["chunk"], row.attempt) for row in rows}


def _is_not_resumable(session: Session, job: JobRow) -> bool:
    """Whether it was stopped and cannot be resumed, because its rows are gone."""
    rows = select(DatasetRow.id).where(DatasetRow.id == job.dataset)
    return job.status in _STOPPED and session.scalars(rows).one_or_none() is None
