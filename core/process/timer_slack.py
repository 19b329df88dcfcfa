"""Lets a thread wake when its time is up.

Linux lets waits with a timeout last up to 50 µs longer, to wake several threads at once. A thread
that wants the interpreter's lock waits with a timeout (`sys.setswitchinterval`), so that no shorter
interval has an effect. Source: prctl(2), PR_SET_TIMERSLACK.
"""

import ctypes
import sys

_SET_TIMER_SLACK = 29  # <linux/prctl.h>
SLACK_NANOSECONDS = 1000


def wake_on_time() -> bool:
    """Let waits of this thread end at most a microsecond late; False where this is not possible."""
    if sys.platform != "linux":
        return False
    return ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, SLACK_NANOSECONDS, 0, 0, 0) == 0
