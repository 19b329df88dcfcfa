"""S3 servers of the tests' own: rclone's, as in the compose stack, and moto's, nearer to AWS."""

import copy
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from unittest import mock

import pytest

from core.storage.bucket import Bucket
from tests.waiting import free_port, wait_for_port

KEY, SECRET = "credence-tests", "only-for-the-tests"
BUCKET = "credence"


@dataclass(frozen=True)
class S3Server:
    """Where it answers, and what a client's environment needs."""

    url: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL_S3": self.url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @cached_property
    def bucket(self) -> Bucket:
        """A bucket that exists, through one connection for all tests: to build it takes a while."""
        with mock.patch.dict(os.environ, self.environment):
            bucket = Bucket(BUCKET, "")
        bucket._client.create_bucket(Bucket=BUCKET)
        return bucket

    def new_bucket(self) -> Bucket:
        """As good as a new one: a prefix that nobody else uses."""
        bucket = copy.copy(self.bucket)
        bucket._prefix = f"{secrets.token_hex(6)}/models/"
        return bucket


@contextmanager
def running_rclone(folder: Path) -> Iterator[S3Server]:
    """Buckets are the folders in `folder`."""
    executable = Path(sys.executable).parent / "rclone"
    found = str(executable) if executable.exists() else shutil.which("rclone")
    if found is None:
        pytest.skip("there is no rclone on the PATH")
    port, keys = free_port(), f"{KEY},{SECRET}"
    address = f"127.0.0.1:{port}"
    line = [found, "serve", "s3", "--auth-key", keys, "--addr", address, "--config", "", folder]
    with _running(line, port) as url:
        yield S3Server(url)


@contextmanager
def running_moto() -> Iterator[S3Server]:
    pytest.importorskip("moto", reason="the package moto is not installed")
    port = free_port()
    with _running([sys.executable, "-m", "moto.server", "-p", str(port)], port) as url:
        yield S3Server(url)


@contextmanager
def _running(line: Sequence[str | Path], port: int) -> Iterator[str]:
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
