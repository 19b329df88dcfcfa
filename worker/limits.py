"""What one job may take: time, and its worker's memory."""

import time

import psutil

from core.settings import GIBIBYTE, Settings


class OverLimit(Exception):
    """A job took more than it may; the message is for people."""


class OverTime(OverLimit):
    """It ran longer."""


class OverMemory(OverLimit):
    """Its worker grew larger."""


class Limits:
    """Counts from when it is made, at the start of an attempt."""

    def __init__(self, settings: Settings) -> None:
        self._seconds, self._bytes = settings.max_job_seconds, settings.max_job_bytes
        self._started = time.monotonic()

    def exceeded(self) -> OverLimit | None:
        """Which limit the job is beyond now, if any."""
        if time.monotonic() - self._started > self._seconds:
            return OverTime(
                f"the job ran for {self._seconds:g} s, the most that CREDENCE_MAX_JOB_SECONDS "
                "allows: resume it to go on from where it is, or give fewer training.epochs",
            )
        if (used := used_bytes()) > self._bytes:
            return OverMemory(
                f"the job's worker took {used / GIBIBYTE:.2f} GiB, more than the "
                f"{self._bytes / GIBIBYTE:.2f} GiB of CREDENCE_MAX_JOB_BYTES: give a smaller "
                "training.batch_size or network.hidden",
            )
        return None


def used_bytes() -> int:
    """Memory of this process and of those that it started, without pages of files.

    Such pages (libraries, data sets that are mapped) give way where memory is short.
    """
    own = psutil.Process()
    return sum(_own_bytes(process) for process in (own, *own.children(recursive=True)))


def _own_bytes(process: psutil.Process) -> int:
    try:
        memory = process.memory_info()
    except psutil.NoSuchProcess:  # it has just ended
        return 0
    return memory.rss - getattr(memory, "shared", 0)  # only Linux tells these apart
