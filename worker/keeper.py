"""Brings the checkpoints of a training run to the store while it goes on."""

import time
from pathlib import Path

import structlog

from core.exceptions import Unavailable
from core.jobs.checkpoints import Checkpoints
from core.jobs.jobs import Claim

log = structlog.get_logger()


class Keeper:
    """Watches the folder that a run saves itself to; the run itself knows of no store.

    What is published is what the run saved last: at most two intervals of work are lost.
    """

    def __init__(
        self, checkpoints: Checkpoints, claim: Claim, folder: Path, seconds: float
    ) -> None:
        self._checkpoints, self._claim, self._folder = checkpoints, claim, folder
        self._seconds = seconds
        self._kept, self._kept_at = self._present(), time.monotonic()

    def keep_if_due(self) -> None:
        """As `keep`, once in an interval; costs next to nothing in between."""
        if time.monotonic() - self._kept_at >= self._seconds:
            self.keep()

    def keep(self) -> None:
        """Publish what is new in the folder. A store that is away does not stop the run.

        Raises:
            LostClaim: the job is another's by now.
        """
        present = self._present()
        if present == self._kept:
            return
        started = self._kept_at = time.monotonic()
        try:
            self._checkpoints.save(self._claim, self._folder)
        except Unavailable as error:
            log.warning("checkpoint not kept; the next one will be", error=str(error))
            return
        self._kept, self._kept_at = present, time.monotonic()
        log.debug("checkpoint kept", seconds=round(self._kept_at - started, 3))

    def _present(self) -> set[tuple[str, int]]:
        """The files and when each was written."""
        files = self._folder.glob("*.safetensors")
        return {(file.name, file.stat().st_mtime_ns) for file in files}
