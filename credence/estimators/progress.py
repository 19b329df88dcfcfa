"""The progress of a training in this process."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

from credence.progress import is_interactive, job_bar, note_on
from credence.types import Job
from models.training.progress import Progress
from models.training.train import ignore


@contextmanager
def training_progress(*, verbose: bool) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows each progress on standard error, or does nothing.

    Terminals and notebooks show the bar of a job. Elsewhere, as in a log, there is a line for each
    tenth of the training.
    """
    if not verbose:
        yield ignore
    elif is_interactive():
        with job_bar() as show:
            yield lambda progress: show(_as_job(progress))
    else:
        yield _Lines()


class _Lines:
    """Writes a line at the first progress and whenever a further tenth is done."""

    def __init__(self) -> None:
        self._written = -1

    def __call__(self, progress: Progress) -> None:
        tenths = int(10 * progress.fraction)
        if tenths > self._written:
            self._written = tenths
            note = note_on(_as_job(progress))
            print(f"{progress.fraction:4.0%} {note}", file=sys.stderr)  # noqa: T201


def _as_job(progress: Progress) -> Job:
    """The progress as the service gives it in a running job."""
    job = {
        "status": "running",
        "progress": {
            "stage": progress.stage,
            "epoch": progress.epoch,
            "epochs": progress.epochs,
            "fraction": progress.fraction,
            "eta_seconds": progress.eta_seconds,
        },
        "metrics": {k: v for k, v in progress.metrics.items() if v is not None},
    }
    return cast(Job, job)
