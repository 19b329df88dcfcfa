"""Progress bars, on standard error or in a notebook.

In a notebook a bar is HTML that is replaced in place, which needs no package of widgets. Standard
is not redirected. By default rich would send it to the bar's console, which is standard error.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import Any

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
    """Whether standard error is a terminal, or this is a notebook."""
    return is_notebook() or sys.stderr.isatty()


def is_notebook() -> bool:
    """Whether this is the process of a notebook."""
    return Console(stderr=True).is_jupyter


class NotebookBar:
    """A bar in the output of a cell, which each call replaces."""

    def __init__(self) -> None:
        self._display: Any = import_module("IPython.display")
        self._handle: Any = None

    def __call__(self, fraction: float | None, text: str) -> None:
        """Show the bar, without an end if the fraction is not known."""
        page = self._display.HTML(bar_html(fraction, text))
        if self._handle is None:
            self._handle = self._display.display(page, display_id=True)
        else:
            self._handle.update(page)


def bar_html(fraction: float | None, text: str) -> str:
    """A bar, and its fraction and a text beside it."""
    value = "" if fraction is None else f" value='{fraction:.4f}'"
    done = "" if fraction is None else f" {fraction:.0%}"
    return f"<div><progress{value} max='1'></progress>{done} {escape(text)}</div>"


@contextmanager
def job_bar(
    console: Console | None = None, *, visible: bool = True
) -> Iterator[Callable[[Job], None]]:
    """A progress bar for a job; yields a function to call with each state of the job."""
    if visible and console is None and is_notebook():
        cell = NotebookBar()
        yield lambda job: cell(fraction_of(job), f"{job['status']} · {note_on(job)}".rstrip(" ·"))
        return
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
            status, done = job["status"], fraction_of(job)
            bar.update(task, description=status, completed=done, note=note_on(job))

        yield show


@contextmanager
def rows_bar(rows: int | None, *, visible: bool = True) -> Iterator[Callable[[int], None]]:
    """A progress bar for predictions; yields a function to call with the number of finished rows.

    Args:
        rows: the number of all rows; None if it is not known.
    """
    if visible and is_notebook():
        yield _rows_in_notebook(rows)
        return
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


def _rows_in_notebook(rows: int | None) -> Callable[[int], None]:
    cell, total = NotebookBar(), 0

    def show(done: int) -> None:
        nonlocal total
        total += done
        cell(total / rows if rows else None, f"predicting · {_count(total, rows)}")

    return show


def fraction_of(job: Job) -> float:
    """How much of a job is done."""
    if job["status"] == "succeeded":
        return 1.0
    return job["progress"]["fraction"] if job["progress"] else 0.0


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
    if (left := seconds_left(job)) is not None:
        parts.append(f"about {_duration(left)} left")
    return " · ".join(parts)


def seconds_left(job: Job) -> float | None:
    """The estimate of a running job once enough is done for it to mean something."""
    progress = job["progress"]
    if progress is None or job["status"] != "running" or progress["fraction"] < ETA_FROM:
        return None
    return progress["eta_seconds"]


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
