"""Kombu's `filesystem://` transport with atomic messages.

In Kombu a consumer may read a message's file before it is written, fail to decode it, and end its
worker. And Kombu moves a message to the system's temporary directory, which is a copy if that is
another disk. Here a rename publishes a message, and the process that removes the file has the
message. A message that a crash cut off is dropped: messages only wake workers.
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
            with suppress(FileNotFoundError, ValueError):  # taken by another, or cut off
                payload = message.read_text(encoding="utf-8")
                message.unlink()  # succeeds for one process only
                return json.loads(payload)
        raise Empty


class Transport(filesystem.Transport):
    """The value of Celery's `broker_transport`."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **options: Any) -> None:
        """Wait for a message in small steps. Between two steps Celery checks whether to stop."""
        step = min(timeout or STEP_SECONDS, STEP_SECONDS)
        super().drain_events(connection, step, **options)  # type: ignore[no-untyped-call]
