"""A thread's waits end in time."""

import ctypes
import sys
import threading

import pytest

from core.process.timer_slack import SLACK_NANOSECONDS, wake_on_time

GET_TIMER_SLACK = 30  # <linux/prctl.h>


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux delays the end of waits")
def test_only_the_thread_that_asks_wakes_on_time() -> None:
    """The kernel tells a thread's slack in nanoseconds."""
    before, found = slack(), []

    def work() -> None:
        found.extend([wake_on_time(), slack()])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True, SLACK_NANOSECONDS]
    assert slack() == before


def slack() -> int:
    return int(ctypes.CDLL(None).prctl(GET_TIMER_SLACK, 0, 0, 0, 0))
