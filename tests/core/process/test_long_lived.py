"""Full collections do not visit what was there before."""

import json
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.process

CODE = """
    import gc, json, weakref
    from core.process.long_lived import keep_present_objects

    class Node:
        def __init__(self):
            self.me = self

    class Kept(Node):
        def __del__(self):
            print(json.dumps(found))

    garbage = weakref.ref(Node())
    kept = Kept()
    keep_present_objects()
    found = {
        "garbage": garbage() is None,
        "present": not any(one is kept for one in gc.get_objects()),
    }
    later = weakref.ref(Node())
    gc.collect()
    found["later"] = later() is None
    del kept
"""


def test_only_later_objects_are_searched_until_the_process_ends() -> None:
    """It prints when the kept cycle is freed: at the end, not before."""
    command = [sys.executable, "-c", textwrap.dedent(CODE)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == {"garbage": True, "present": True, "later": True}
