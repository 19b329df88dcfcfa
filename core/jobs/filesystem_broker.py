"""Kombu's `filesystem://` transport with atomic messages.

Kombu opens a message's file before it writes to it, so a consumer may read an empty file, fail to
decode it, and end its worker. It takes a message by moving it to the system's temporary directory,
which is a copy if that is another disk. Here a message is published by a rename, and belongs to the
process that removes it. A message that a crash cut off is dropped: it only wakes a worker.
"""

import json
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu.transport import filesystem

STEP_SECONDS = 0.25


class Channel(filesystem.Channel):
    """One folder of messages, named by time so that they are read in order."""

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override]
        name = f"{time.time_ns():020d}-{uuid4().hex}.{queue}.msg"
        staged = Path(self.processed_folder, name)
        try:
            staged.write_text(json.dumps(payload), encoding="utf-8")
            staged.rename(Path(self.data_folder_out, name))
        except OSError:  # the disk is full, say
            staged.unlink(missing_ok=True)
            raise

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        for message in sorted(Path(self.data_folder_in).glob(f"*.{queue}.msg")):
            with suppress(FileNotFoundError, ValueError):  # read by another, or cut off by a crash
                payload = message.read_text(encoding="utf-8")
                message.unlink()  # only one of its readers can
                return json.loads(payload)
        raise Empty


class Transport(filesystem.Transport):
    """Named in Celery's `broker_transport`."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **options: Any) -> None:
        """Wait for a message in small steps; between two of them Celery checks whether to stop."""
        step = min(timeout or STEP_SECONDS, STEP_SECONDS)
        super().drain_events(connection, step, **options)  # type: ignore[no-untyped-call]
