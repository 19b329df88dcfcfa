"""How quickly the event loop and the engine pass the interpreter to each other."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

# The engine gives the interpreter away in each of its products, some sixty per batch, and must have
# it back between two. With CPython's 5 ms it waits that long each time while the loop is busy: 64
# clients got 281 answers a second, with this 450 to 490 (docs/benchmarks.md).
SWITCH_SECONDS = 5e-5


@contextmanager
def quick_handover() -> Iterator[None]:
    """Within, threads of this process take turns a hundred times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
