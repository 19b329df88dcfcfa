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
from models.training.checkpoints import CheckpointSpacing

log = structlog.get_logger()


class CheckpointUploader:
    """Uploads the folder to which a training writes its checkpoints, as soon as there is a new one.

    Uploads are spaced like checkpoints: stages that end one after the other share an upload.
    """

    def __init__(
        self, checkpoints: Checkpoints, claim: Claim, folder: Path, spacing: CheckpointSpacing
    ) -> None:
        self._checkpoints, self._claim, self._folder = checkpoints, claim, folder
        self._spacing = spacing
        self._uploaded, self._seen = self._files(), self._changed()

    def upload_if_due(self) -> None:
        """Upload the folder if it has changed and the spacing allows; otherwise cheap."""
        if self._spacing.is_due() and (now := self._changed()) != self._seen:
            self._seen = now
            self.upload()

    def upload(self) -> None:
        """Upload the folder if it has changed. If the store is away, log it and continue.

        Raises:
            LostClaim: another worker has taken over the job.
        """
        files = self._files()
        if files == self._uploaded:
            return
        started = time.monotonic()
        with self._spacing.measured():
            try:
                self._checkpoints.save(self._claim, self._folder)
            except Unavailable as error:
                log.warning("checkpoint not uploaded; the next one will be", error=str(error))
                return
        self._uploaded = files
        log.debug("checkpoint uploaded", seconds=round(time.monotonic() - started, 3))

    def _changed(self) -> int:
        """When a file of the folder was created or replaced last; 0 without a folder."""
        try:
            return self._folder.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def _files(self) -> set[tuple[str, int]]:
        """The names of the files and their times of change."""
        files = self._folder.glob("*.safetensors")
        return {(file.name, file.stat().st_mtime_ns) for file in files}


@contextmanager
def uploading(
    context: Context, claim: Claim, folder: Path, should_stop: Callable[[], bool]
) -> Iterator[Callable[[], bool]]:
    """Fetch the checkpoints of earlier attempts into the folder, and upload those of this one.

    Yields a `should_stop` that first uploads the folder if due. After an exception, the folder is
    uploaded a last time.
    """
    if context.checkpoints.fetch(claim.job_id, folder):
        context.jobs.event(claim, "log", {"message": "continues from a checkpoint"})
    spacing = CheckpointSpacing(context.settings.checkpoint_seconds)
    uploader = CheckpointUploader(context.checkpoints, claim, folder, spacing)

    def upload_or_stop() -> bool:
        uploader.upload_if_due()
        return should_stop()

    try:
        yield upload_or_stop
    except Exception:
        uploader.upload()
        raise
