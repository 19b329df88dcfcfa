"""Progress bars, on standard error or in a notebook.

Standard output is not redirected. By default rich would send it to the bar's console, which is
standard error.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from credence.types import Job

ETA_FROM = 0.02  # fraction of the work; before it, start-up time distorts the estimate
STAGES = {
    "fit": "fit",
    "swag": "averaging weights",
    "laplace": "fit under the chosen prior",
    "chains": "sampling weights",
}


def is_interactive() -> bool:
    """Whether standard error is a terminal, or this is a notebook that can show bars."""
    if Console(stderr=True).is_jupyter:
        return importlib.util.find_spec("ipywidgets") is not None
    return sys.stderr.isatty()


@contextmanager
def job_bar(
    console: Console | None = None, *, visible: bool = True
) -> Iterator[Callable[[Job], None]]:
    """A progress bar for a job; yields a function to call with each state of the job."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}"),
        console=console or Console(stderr=True),
        disable=not visible,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task("waiting", total=1.0, note="")

        def show(job: Job) -> None:
            fraction = job["progress"]["fraction"] if job["progress"] else 0.0
            bar.update(task, description=job["status"], completed=fraction, note=note_on(job))

        yield show


@contextmanager
def rows_bar(rows: int | None, *, visible: bool = True) -> Iterator[Callable[[int], None]]:
    """A progress bar for predictions; yields a function to call with the number of finished rows.

    Args:
        rows: the number of all rows; None if it is not known.
    """
    bar = Progress(
        TextColumn("predicting"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not visible,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task("", total=rows, count=_count(0, rows))

        def show(done: int) -> None:
            bar.advance(task, done)
            bar.update(task, count=_count(int(bar.tasks[0].completed), rows))

        yield show


def _count(done: int, rows: int | None) -> str:
    return f"{done:,} rows" if rows is None else f"{done:,} of {rows:,} rows"


def note_on(job: Job) -> str:
    """What a job does: its place in the queue, or its stage, epoch, objective and time left."""
    if job["status"] == "queued":
        return f"position {job['queue_position']}"
    progress = job["progress"]
    if progress is None:
        return ""
    unit = next((unit for unit in ("chunk", "method") if unit in progress), "epoch")
    stage = f"{_stage(progress['stage'])}: " if "stage" in progress else ""
    parts = [f"{stage}{unit} {progress.get(unit)}/{progress.get(f'{unit}s')}"]
    if "nelbo" in job["metrics"]:
        parts.append(f"nelbo {job['metrics']['nelbo']:.4g}")
    eta_seconds = progress["eta_seconds"]
    is_reliable = job["status"] == "running" and progress["fraction"] >= ETA_FROM
    if eta_seconds is not None and is_reliable:
        parts.append(f"about {_duration(eta_seconds)} left")
    return " · ".join(parts)


def _stage(name: str) -> str:
    """The text for a stage: `refit-prune-0.95` gives "all rows, 95% pruned"."""
    step = name.removeprefix("refit-")
    rows = "all rows, " if step != name else ""
    if step.startswith("prune-"):
        return f"{rows}{100 * float(step.removeprefix('prune-')):g}% pruned"
    return rows + STAGES.get(step, step)


def _duration(seconds: float) -> str:
    """In seconds below 1.5 minutes, in minutes below 1.5 hours, else in hours."""
    minutes = seconds / 60
    if minutes < 1.5:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
