"""The two installations that the same tests run on: a laptop, and what a compose stack has."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from core.context import Context, open_context
from core.settings import load_settings
from tests.core.postgresql import running_postgresql
from tests.core.redis_server import running_redis
from tests.core.s3 import BUCKET, running_rclone


@dataclass(frozen=True)
class Installation:
    """What a process of it has in its environment; nothing on a laptop."""

    environment: dict[str, str]

    @property
    def is_spread(self) -> bool:
        """Whether each process may have a machine, and so a data directory, of its own."""
        return bool(self.environment)

    @contextmanager
    def context(self, data_dir: Path) -> Iterator[Context]:
        """What a process there works with."""
        with mock.patch.dict(os.environ, self.environment):
            opened = open_context(load_settings(data_dir=data_dir, lease_seconds=3))
            yield opened
            opened.close()


LAPTOP = Installation({})


@contextmanager
def running_production() -> Iterator[Installation]:
    """PostgreSQL, Redis and an S3 server, for as long as the context lives."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = stack.enter_context(running_postgresql())
        redis = stack.enter_context(running_redis(folder))
        s3 = stack.enter_context(running_rclone(folder))
        assert s3.bucket
        urls = {
            "CREDENCE_DATABASE_URL": database,
            "CREDENCE_BROKER_URL": redis.url,
            "CREDENCE_ARTIFACT_URL": f"s3://{BUCKET}/{secrets.token_hex(4)}",
        }
        yield Installation(s3.environment | urls)
