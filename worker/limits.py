"""Limits of one job: its time, and the memory of its worker."""

from time import monotonic

import psutil

from core.settings import GIBIBYTE, Settings


class OverLimit(Exception):
    """A job exceeds a limit. `code` is for programs, the message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Limits:
    """The limits of an attempt, which starts when this object is created."""

    def __init__(self, settings: Settings) -> None:
        self._seconds, self._bytes = settings.max_job_seconds, settings.max_job_bytes
        self._started = monotonic()

    def exceeded(self) -> OverLimit | None:
        """An error for a limit that the job exceeds now; None if there is none."""
        if monotonic() - self._started > self._seconds:
            return OverLimit(
                "time_limit",
                f"the job ran for {self._seconds:g} s, the most that CREDENCE_MAX_JOB_SECONDS "
                "allows: resume it to continue, or give fewer training.epochs",
            )
        if (used := used_bytes()) > self._bytes:
            return OverLimit(
                "out_of_memory",
                f"the job's worker took {used / GIBIBYTE:.2f} GiB, more than the "
                f"{self._bytes / GIBIBYTE:.2f} GiB of CREDENCE_MAX_JOB_BYTES: give a smaller "
                "training.batch_size or network.hidden",
            )
        return None


def used_bytes() -> int:
    """Bytes of memory of this process and its children, without pages of files.

    The system can drop pages of files (libraries, mapped data sets) when memory is short.
    """
    own = psutil.Process()
    return sum(_own_bytes(process) for process in (own, *own.children(recursive=True)))


def _own_bytes(process: psutil.Process) -> int:
    try:
        memory = process.memory_info()
    except psutil.NoSuchProcess:  # it has just ended
        return 0
    return memory.rss - getattr(memory, "shared", 0)  # only Linux has `shared`
