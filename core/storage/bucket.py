"""A bucket of an S3 server, with the few operations that a store needs.

Endpoint, region and credentials come from the sources of AWS's own tools (`AWS_…` variables, shared
files, roles). boto3 sends a CRC-32 with every upload; servers that support it check it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import boto3
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    PartialCredentialsError,
)

from core.exceptions import Unavailable

CONNECT_TIMEOUT_SECONDS = 3
READ_TIMEOUT_SECONDS = 20
ATTEMPTS = 4  # within about three seconds, if each fails at once
CONNECTIONS = 16
PART_BYTES = 2**24  # larger files go in parts of this size, a few at a time

_TRANSFER = TransferConfig(
    multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, max_concurrency=4
)
_DELETED_AT_ONCE = 1000  # S3's limit

_MISSING = {"NoSuchKey", "404"}
_EXISTS = {"PreconditionFailed", "ConditionalRequestConflict"}
_NO_CONDITIONS = {"NotImplemented", "501"}
_REFUSED = {
    "401",
    "403",
    "AccessDenied",
    "ExpiredToken",
    "Forbidden",
    "InvalidAccessKeyId",
    "InvalidToken",
    "SignatureDoesNotMatch",
}


class Bucket:
    """The objects under `prefix` in a bucket; names do not contain the prefix.

    Every method raises `Unavailable`, with advice, if the server does not work.
    """

    def __init__(self, name: str, prefix: str) -> None:
        self._name = name
        self._prefix = f"{prefix}/" if prefix else ""
        self._client = boto3.session.Session().client(
            "s3",
            config=Config(
                connect_timeout=CONNECT_TIMEOUT_SECONDS,
                read_timeout=READ_TIMEOUT_SECONDS,
                retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
                max_pool_connections=CONNECTIONS,
            ),
        )

    def put(self, name: str, content: bytes) -> None:
        """Write a small object."""
        with self._translated():
            self._client.put_object(**self._at(name), Body=content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a small object unless it exists. False if it exists.

        Servers without conditional writes overwrite it: call `get` first.
        """
        with self._translated():
            try:
                self._client.put_object(**self._at(name), Body=content, IfNoneMatch="*")
            except ClientError as error:
                if _code(error) in _EXISTS:
                    return False
                if _code(error) not in _NO_CONDITIONS:
                    raise
                self._client.put_object(**self._at(name), Body=content)
        return True

    def get(self, name: str) -> bytes | None:
        """The content of a small object, or None if it does not exist."""
        with self._translated():
            try:
                return bytes(self._client.get_object(**self._at(name))["Body"].read())
            except ClientError as error:
                if _code(error) in _MISSING:
                    return None
                raise

    def upload(self, name: str, path: Path) -> None:
        """Write an object of any size from a file."""
        with self._translated():
            self._client.upload_file(str(path), *self._at(name).values(), Config=_TRANSFER)

    def download(self, name: str, path: Path) -> bool:
        """Read an object of any size into a file. False if it does not exist."""
        with self._translated():
            try:
                self._client.download_file(*self._at(name).values(), str(path), Config=_TRANSFER)
            except ClientError as error:
                if _code(error) in _MISSING:
                    return False
                raise
        return True

    def list(self, start: str) -> Iterator[tuple[str, datetime]]:
        """The names that begin with `start`, each with the time of its last write."""
        pages = self._client.get_paginator("list_objects_v2")
        with self._translated():
            for page in pages.paginate(Bucket=self._name, Prefix=self._prefix + start):
                for item in page.get("Contents", ()):
                    yield item["Key"].removeprefix(self._prefix), item["LastModified"]

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects in this order, a thousand at a time. Missing ones are ignored."""
        for start in range(0, len(names), _DELETED_AT_ONCE):
            some = names[start : start + _DELETED_AT_ONCE]
            objects = [{"Key": self._prefix + name} for name in some]
            with self._translated():
                answer = self._client.delete_objects(
                    Bucket=self._name, Delete={"Objects": objects, "Quiet": True}
                )
            for failed in answer.get("Errors", ()):
                raise Unavailable(f"{self} does not remove {failed['Key']}: {failed['Code']}")

    def __str__(self) -> str:
        return f"the artifact store at {self._client.meta.endpoint_url}"

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self._name, "Key": self._prefix + name}

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError, Boto3Error) as error:
            raise Unavailable(self._explain(error)) from error

    def _explain(self, error: Exception) -> str:
        if isinstance(error, Boto3Error) and isinstance(error.__context__, ClientError):
            error = error.__context__  # of a transfer
        match error:
            case NoCredentialsError() | PartialCredentialsError():
                return (
                    f"{self} needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                    "or AWS_SHARED_CREDENTIALS_FILE, or give the machine a role"
                )
            case ClientError() if _code(error) == "NoSuchBucket":
                return f"{self} has no bucket {self._name!r}: create it, or name another"
            case ClientError() if _code(error) in _REFUSED:
                return (
                    f"{self} refuses the credentials ({_code(error)}): give some that may list, "
                    f"read, write and delete in the bucket {self._name!r}"
                )
            case ClientError():
                return f"{self} does not work now: {_code(error)}"
            case _:
                return f"{self} does not answer now: {type(error).__name__}"


def _code(error: ClientError) -> Any:
    return error.response.get("Error", {}).get("Code", "")
