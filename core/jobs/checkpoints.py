"""Checkpoints of unfinished trainings in the store, so that any machine can continue them.

A checkpoint is an artifact, named after the attempt that wrote it and a number. The last name is
the newest checkpoint. So a late write of an earlier attempt does not replace that of a later one.
"""

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import structlog

from core.exceptions import LostClaim, NotFound
from core.jobs.jobs import Claim, Jobs
from core.process.disks import on_disk
from core.storage import ArtifactStore
from models.exceptions import CorruptArtifact

log = structlog.get_logger()


class Checkpoints:
    """The store's copies of the folders of trainings."""

    def __init__(self, jobs: Jobs, store: ArtifactStore) -> None:
        self._jobs = jobs
        self._store = store

    def save(self, claim: Claim, folder: Path) -> None:
        """Store the folder as it is now, then delete older checkpoints.

        The training may write to the folder meanwhile.

        Raises:
            LostClaim: another attempt has the job; nothing is stored.
            Unavailable: the store does not answer; the previous checkpoint is still there.
        """
        older = self._names(claim.job_id)
        name = _next(claim, older)
        with on_disk("a checkpoint"), tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            self._store.put_directory(_key(claim.job_id, name), _snapshot(folder, Path(temporary)))
        try:
            self._jobs.report(claim)
        except LostClaim:
            self._store.delete(_key(claim.job_id, name))
            raise
        for old in older:
            if old < name:  # keep those of a later attempt
                self._store.delete(_key(claim.job_id, old))

    def fetch(self, job_id: str, folder: Path) -> bool:
        """Copy the newest checkpoint to a new folder. False, and no folder, if there is none."""
        names = self._names(job_id)
        if not names:
            return False
        try:
            shutil.copytree(self._store.local_path(_key(job_id, names[-1])), folder)
        except NotFound:  # the job has ended elsewhere meanwhile
            return False
        except CorruptArtifact as error:
            log.warning("checkpoint damaged: the job starts from the beginning", error=str(error))
            return False
        return True

    def exists(self, job_id: str) -> bool:
        """Whether the job has a checkpoint."""
        return bool(self._names(job_id))

    def drop(self, job_id: str) -> None:
        """Delete the checkpoints of a job."""
        self._store.delete(checkpoints_key(job_id))

    def _names(self, job_id: str) -> list[str]:
        return list(self._store.children(checkpoints_key(job_id)))


def checkpoints_key(job_id: str) -> str:
    """The key under which all checkpoints of a job are stored."""
    return f"checkpoints/{job_id}"


def _key(job_id: str, name: str) -> str:
    return f"{checkpoints_key(job_id)}/{name}"


def _next(claim: Claim, names: list[str]) -> str:
    """The next name, `attempt-number`, with leading zeros so that names sort by time."""
    attempt = f"{claim.attempt:06d}-"
    numbers = [int(name.removeprefix(attempt)) for name in names if name.startswith(attempt)]
    return f"{attempt}{max(numbers, default=0) + 1:06d}"


def _snapshot(folder: Path, temporary: Path) -> Path:
    """A folder of hard links to the files as they are now. Files are replaced, never changed.

    Files with other suffixes are left out: they are still being written.
    """
    now = temporary / "now"
    now.mkdir()
    for file in folder.glob("*.safetensors"):
        _link(file, now / file.name)
    return now


def _link(file: Path, link: Path) -> None:
    """Create a hard link; try again if the file is replaced meanwhile (`link(2)`, ENOENT)."""
    while file.exists():
        with suppress(FileNotFoundError):
            link.hardlink_to(file)
            return
