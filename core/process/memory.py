"""How much memory this process may use, which in a container is less than the machine has."""

import os
from pathlib import Path

from core.process.cores import CGROUP


def available_bytes(cgroup: Path = CGROUP) -> int:
    """The machine's memory, and no more than the container's limit.

    Source: the kernel's `cgroup-v2.rst`, `memory.max`, and `memory.rst` for version 1.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _limit(cgroup)
    return machine if limit is None else min(machine, limit)


def _limit(cgroup: Path) -> int | None:
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            return int((cgroup / name).read_text())
        except (OSError, ValueError):  # another version, or "max"
            continue
    return None
