"""The cores and the memory that this process may use, also inside a container."""

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")  # inside a container, that of the container


def available_cores(cgroup: Path = CGROUP) -> int:
    """The cores of the affinity mask, at most the container's CPU quota, at least 1.

    With more threads than the quota, the kernel stops all of them for the rest of each period, and
    parts of a matrix product wait for each other. Source: the kernel's `cgroup-v2.rst`, `cpu.max`,
    and `sched-bwc.rst` for version 1.
    """
    mask = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroup)
    return mask if quota is None else max(1, min(mask, int(quota)))


def available_bytes(cgroup: Path = CGROUP) -> int:
    """The machine's memory, or the container's limit if that is less.

    Source: the kernel's `cgroup-v2.rst`, `memory.max`, and `memory.rst` for version 1.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _limit(cgroup)
    return machine if limit is None else min(machine, limit)


def _quota(cgroup: Path) -> float | None:
    """CPU time per period in cores; None without a limit."""
    try:
        allowed, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            allowed, period = (
                (cgroup / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")
            )
        except OSError:
            return None
    unlimited = allowed == "max" or int(allowed) < 0
    return None if unlimited else int(allowed) / int(period)


def _limit(cgroup: Path) -> int | None:
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            return int((cgroup / name).read_text())
        except (OSError, ValueError):  # another version, or "max"
            continue
    return None
