"""Progress bars, on standard error or in a notebook."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from credence.types import Job


def somebody_watches() -> bool:
    """Whether standard error is a terminal, or this a notebook in which bars can be drawn."""
    if Console(stderr=True).is_jupyter:
        return importlib.util.find_spec("ipywidgets") is not None
    return sys.stderr.isatty()


@contextmanager
def job_bar(
    console: Console | None = None, *, visible: bool = True
) -> Iterator[Callable[[Job], None]]:
    """A bar for a job; what it gives is to be called with each state of the job."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}"),
        console=console or Console(stderr=True),
        disable=not visible,
    )
    with bar:
        task = bar.add_task("waiting", total=1.0, note="")

        def show(job: Job) -> None:
            fraction = job["progress"]["fraction"] if job["progress"] else 0.0
            bar.update(task, description=job["status"], completed=fraction, note=_note(job))

        yield show


@contextmanager
def rows_bar(rows: int | None, *, visible: bool = True) -> Iterator[Callable[[int], None]]:
    """A bar for predictions; what it gives is to be called with the rows that were done.

    Args:
        rows: how many there are; None if nobody knows.
    """
    bar = Progress(
        TextColumn("predicting"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not visible,
    )
    with bar:
        task = bar.add_task("", total=rows)
        yield lambda done: bar.advance(task, done)


def _note(job: Job) -> str:
    if job["status"] == "queued":
        return f"position {job['queue_position']}"
    progress = job["progress"]
    if progress is None:
        return ""
    unit = next((unit for unit in ("chunk", "method") if unit in progress), "epoch")
    parts = [f"{unit} {progress.get(unit)}/{progress.get(f'{unit}s')}"]
    if "nelbo" in job["metrics"]:
        parts.append(f"nelbo {job['metrics']['nelbo']:.4g}")
    if progress["eta_seconds"] is not None and job["status"] == "running":
        parts.append(f"{progress['eta_seconds']:.0f} s left")
    return " · ".join(parts)
