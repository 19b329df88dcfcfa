"""A child process that ends with its parent, however the parent ends."""

import os
import signal
import threading
import time


def stop_with_stdin(grace_seconds: float) -> None:
    """Send this process SIGTERM once its standard input closes, and SIGKILL after the grace.

    The parent alone holds the other end open; it closes even when the parent is killed.
    """

    def watch() -> None:
        # os.read takes no lock: a thread inside sys.stdin.read would abort the interpreter's exit.
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace_seconds)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="stop-with-stdin", daemon=True).start()
