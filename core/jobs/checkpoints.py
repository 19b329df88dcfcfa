"""Checkpoints of unfinished training jobs, in the store: another machine can go on from them.

Each is an artifact of its own, named after the attempt that wrote it and its number: whichever
comes last by name is the newest. A worker that was lost cannot get in front of its successor.
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
    """The folder of a training run, kept while the job can still be run or resumed."""

    def __init__(self, jobs: Jobs, store: ArtifactStore) -> None:
        self._jobs = jobs
        self._store = store

    def save(self, claim: Claim, folder: Path) -> None:
        """Publish the folder as it is now; then older ones go. It may be written to meanwhile.

        Raises:
            LostClaim: the job is another's by now; nothing is kept.
            Unavailable: the store does not take it now; the last one is still there.
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
            if old < name:  # not those of whoever has the job now
                self._store.delete(_key(claim.job_id, old))

    def fetch(self, job_id: str, folder: Path) -> bool:
        """Copy the newest checkpoint to a new folder; False, and no folder, if there is none."""
        names = self._names(job_id)
        if not names:
            return False
        try:
            shutil.copytree(self._store.local_path(_key(job_id, names[-1])), folder)
        except NotFound:  # the job has ended elsewhere meanwhile
            return False
        except CorruptArtifact as error:
            log.warning("checkpoint damaged: the job starts anew", error=str(error))
            return False
        return True

    def exists(self, job_id: str) -> bool:
        """Whether there is something to go on from."""
        return bool(self._names(job_id))

    def drop(self, job_id: str) -> None:
        """Forget the checkpoints of a job that nobody will go on with."""
        self._store.delete(checkpoints_key(job_id))

    def _names(self, job_id: str) -> list[str]:
        return list(self._store.children(checkpoints_key(job_id)))


def checkpoints_key(job_id: str) -> str:
    """What all checkpoints of a job are stored under."""
    return f"checkpoints/{job_id}"


def _key(job_id: str, name: str) -> str:
    return f"{checkpoints_key(job_id)}/{name}"


def _next(claim: Claim, names: list[str]) -> str:
    """`attempt-number`, with zeros in front: the order of names is that of time."""
    attempt = f"{claim.attempt:06d}-"
    numbers = [int(name.removeprefix(attempt)) for name in names if name.startswith(attempt)]
    return f"{attempt}{max(numbers, default=0) + 1:06d}"


def _snapshot(folder: Path, temporary: Path) -> Path:
    """Links to the files of this moment: they are replaced as a whole, and never written to.

    What has another name is still being written, and may be gone when it is looked for.
    """
    now = temporary / "now"
    now.mkdir()
    for file in folder.glob("*.safetensors"):
        _link(file, now / file.name)
    return now


def _link(file: Path, link: Path) -> None:
    """Again if the file is replaced at this very moment: a link to what has just lost its name
    fails as if there had been nothing (`link(2)`, ENOENT).
    """
    while file.exists():
        with suppress(FileNotFoundError):
            link.hardlink_to(file)
            return
