"""A process that leaves ends at once, with its exit code, and takes along what it started."""

import subprocess
import sys

import psutil
import pytest

from tests.waiting import wait_until

pytestmark = pytest.mark.stack

HANGING = """
import subprocess, sys, threading, time
from core.process.ending import leave

child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid)
threading.Thread(target=time.sleep, args=[600]).start()  # the interpreter would join it
leave(int(sys.argv[1]))
"""


def has_ended(process: int) -> bool:
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_neither_a_thread_nor_a_child_keeps_a_process_that_leaves() -> None:
    for code in (0, 3):
        command = [sys.executable, "-c", HANGING, str(code)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, done.stderr
        child = int(done.stdout)  # written although nothing flushed it
        wait_until(lambda child=child: has_ended(child))  # the kernel takes a moment for that
