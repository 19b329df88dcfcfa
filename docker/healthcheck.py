"""Check the container's process: `healthcheck.py api` or `healthcheck.py worker`."""

import json
import re
import sys
import time
from urllib.request import urlopen

HEARTBEAT = re.compile(r"^credence_worker_heartbeat_timestamp_seconds (\S+)$", re.MULTILINE)
SILENT_SECONDS = 30  # a thread of the worker sends a heartbeat every 2 s


def check_api() -> None:
    """Raise if the engine makes no progress, or the database has not answered yet."""
    with urlopen("http://127.0.0.1:8000/health/ready", timeout=4) as answer:
        json.load(answer)


def check_worker() -> None:
    """Raise if the worker's last heartbeat is old."""
    with urlopen("http://127.0.0.1:9101/metrics", timeout=4) as answer:
        found = HEARTBEAT.search(answer.read().decode())
    age = time.time() - float(found[1]) if found else float("inf")
    if age > SILENT_SECONDS:
        raise TimeoutError(f"the last heartbeat is {age:.0f} s old")


if __name__ == "__main__":
    {"api": check_api, "worker": check_worker}[sys.argv[1]]()
