"""Uploads the checkpoints of a training to the store while it runs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from core.context import Context
from core.exceptions import Unavailable
from core.jobs.checkpoints import Checkpoints
from core.jobs.jobs import Claim

log = structlog.get_logger()


class CheckpointUploader:
    """Watches the folder that a training writes its checkpoints to.

    It uploads what the training has written last: at most two intervals of work are lost.
    """

    def __init__(
        self, checkpoints: Checkpoints, claim: Claim, folder: Path, seconds: float
    ) -> None:
        self._checkpoints, self._claim, self._folder = checkpoints, claim, folder
        self._seconds = seconds
        self._uploaded, self._uploaded_at = self._files(), time.monotonic()

    def upload_if_due(self) -> None:
        """As `upload`, once per interval; costs next to nothing in between."""
        if time.monotonic() - self._uploaded_at >= self._seconds:
            self.upload()

    def upload(self) -> None:
        """Uploads the folder if it has changed. A store that is away does not stop the training.

        Raises:
            LostClaim: another worker has the job by now.
        """
        files = self._files()
        if files == self._uploaded:
            return
        started = self._uploaded_at = time.monotonic()
        try:
            self._checkpoints.save(self._claim, self._folder)
        except Unavailable as error:
            log.warning("checkpoint not uploaded; the next one will be", error=str(error))
            return
        self._uploaded, self._uploaded_at = files, time.monotonic()
        log.debug("checkpoint uploaded", seconds=round(self._uploaded_at - started, 3))

    def _files(self) -> set[tuple[str, int]]:
        """The names of the files and when each was written."""
        files = self._folder.glob("*.safetensors")
        return {(file.name, file.stat().st_mtime_ns) for file in files}


@contextmanager
def uploading(
    context: Context, claim: Claim, folder: Path, should_stop: Callable[[], bool]
) -> Iterator[Callable[[], bool]]:
    """Fetches what earlier attempts saved into the folder, and uploads what this one saves.

    Yields a `should_stop` that uploads what is due before it returns. At an exception all that is
    saved is uploaded.
    """
    if context.checkpoints.fetch(claim.job_id, folder):
        context.jobs.event(claim, "log", {"message": "goes on from a checkpoint"})
    seconds = context.settings.checkpoint_seconds
    uploader = CheckpointUploader(context.checkpoints, claim, folder, seconds)

    def upload_or_stop() -> bool:
        uploader.upload_if_due()
        return should_stop()

    try:
        yield upload_or_stop
    except Exception:
        uploader.upload()
        raise
