"""End a child process when its parent ends, even if the parent is killed."""

import os
import signal
import threading
import time


def stop_with_stdin(grace_seconds: float) -> None:
    """Send this process SIGTERM when its standard input closes, and SIGKILL after the grace time.

    Only the parent has the other end open. The kernel closes it when the parent ends.
    """

    def watch() -> None:
        # os.read takes no lock: a thread inside sys.stdin.read would abort the interpreter's exit.
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace_seconds)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="stop-with-stdin", daemon=True).start()
