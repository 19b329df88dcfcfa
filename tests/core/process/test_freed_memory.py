"""Freed arrays are used again without new pages from the kernel, and go back to it when told."""

import platform
import subprocess
import sys
import textwrap

import pytest

from core.process.freed_memory import KEPT_BYTES, SERVICE_BYTES

IS_GLIBC = platform.libc_ver()[0] == "glibc"
pytestmark = [
    pytest.mark.stack,
    pytest.mark.skipif(not IS_GLIBC, reason="only glibc is told to keep freed memory"),
]

COUNTING = """
    import resource, torch
    from pathlib import Path
    from core.process.freed_memory import keep_freed_memory, return_freed_memory

    def faults():
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    def work():
        parts = [torch.ones(2**19) for _ in range(8)]  # eight arrays of 2 MiB, as in a step

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1])
"""


def run(body: str) -> list[int]:
    """The numbers that a fresh process prints."""
    code = textwrap.dedent(COUNTING) + textwrap.dedent(body)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return [int(number) for number in done.stdout.split()]


@pytest.mark.parametrize("kept_bytes", [KEPT_BYTES, SERVICE_BYTES])
def test_a_step_that_is_repeated_touches_no_new_pages(kept_bytes: int) -> None:
    (kept,) = run(f"""
        keep_freed_memory({kept_bytes})
        for _ in range(3):
            work()
        before = faults()
        for _ in range(10):
            work()
        print(faults() - before)
    """)
    pages = 10 * 8 * 2 * 2**20 // 4096
    assert kept < pages / 100


def test_kept_memory_goes_back_when_told() -> None:
    before, kept, after = run("""
        keep_freed_memory()
        work()
        print(resident())
        parts = [torch.ones(2**20) for _ in range(40)]  # 160 MiB
        del parts
        print(resident())
        return_freed_memory()
        print(resident())
    """)
    mib = 2**20 // 4096
    assert kept - before > 100 * mib
    assert after - before < 60 * mib
