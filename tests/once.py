"""Build what is costly once in a run, also where several processes of pytest share the run."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """A folder that `build` has filled, for all to read and nobody to change.

    The first process that asks builds it; the others wait for it.
    """
    worker = factory.getbasetemp()
    run = worker.parent if worker.name.startswith("popen-gw") else worker  # of pytest-xdist
    built = run / f"once-{name}"
    with FileLock(run / f"once-{name}.lock"):
        if not built.exists():
            unfinished = run / f"unfinished-{name}"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            build(unfinished)
            unfinished.rename(built)
    return built
