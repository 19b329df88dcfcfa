"""A disk that is full, or takes nothing at all.

Full: the system lets no process of the service write beyond so many bytes of any file
(RLIMIT_FSIZE of a process that runs, which needs no root). SQLite, uploads, models and logs get the
error in the middle of a write, as on a full disk. A child that a process starts has the limit, too.

Read-only: the store is mounted again, over itself, which needs root. Without root its folders lose
the permission to write, which means nothing to root.
"""

import os
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.chaos.faults.fault import Fault, Run
from tests.chaos.world import World

SMALL = (4096, 65_536, 1_000_000)  # bytes


def fill(run: Run) -> None:
    """For all processes that run now."""
    run.world.limit_files(run.random.choice(SMALL))
    run.pause(0.2, 2)
    run.world.limit_files(None)


def make_read_only(run: Run) -> None:
    """The store of models and data sets."""
    root = run.world.context.settings.artifact_root
    _protect(root)
    try:
        run.pause(0.2, 2)
    finally:
        _allow(root)


def _protect(root: Path) -> None:
    if os.geteuid() == 0:
        _mount("--bind", str(root), str(root))
        _mount("-o", "remount,ro,bind", str(root))
    else:
        for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
            folder.chmod(0o500)


def _allow(root: Path) -> None:
    if os.geteuid() == 0:
        subprocess.run(["umount", "--lazy", str(root)], check=True)
    else:
        for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
            folder.chmod(0o700)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _may_protect(_: World) -> bool:
    return os.geteuid() != 0 or _may_mount()


@cache
def _may_mount() -> bool:
    """Whether root may: a container's often may not."""
    with TemporaryDirectory() as place:
        done = subprocess.run(["mount", "--bind", place, place], check=False, capture_output=True)
        if done.returncode == 0:
            subprocess.run(["umount", "--lazy", place], check=True)
    return done.returncode == 0


FAULTS = {
    "full_disk": Fault(fill, 2),
    "read_only_store": Fault(make_read_only, 1, _may_protect),
}
