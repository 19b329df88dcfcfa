"""A folder of a bucket that predictions are written to."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

from pyarrow import fs

from core.destinations.place import URI
from core.exceptions import Invalid, Unavailable

REFUSED = (
    *("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE_DOES_NOT_MATCH", "NO_SUCH_BUCKET"),
    *("HTTP status 401", "HTTP status 403", "HTTP status 404"),
)
CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 10, 30, 3
CHUNK = 2**20


@dataclass(frozen=True)
class Keys:
    """How a bucket is opened. Without a key, pyarrow and deltalake look into the environment."""

    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    endpoint: str | None = None
    region: str | None = None

    def filesystem(self) -> fs.S3FileSystem:
        """The buckets, for pyarrow."""
        given: dict[str, Any] = {
            "access_key": self.access_key,
            "secret_key": self.secret_key,
            "session_token": self.session_token,
            "endpoint_override": self.endpoint,
            "region": self.region,
        }
        return fs.S3FileSystem(
            **{name: value for name, value in given.items() if value},
            connect_timeout=CONNECT_SECONDS,
            request_timeout=READ_SECONDS,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        )

    def options(self) -> dict[str, str]:
        """The same for deltalake."""
        given = {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_SESSION_TOKEN": self.session_token,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": self.region,
        }
        plain = {"AWS_ALLOW_HTTP": "true"} if (self.endpoint or "").startswith("http:") else {}
        return {name: value for name, value in given.items() if value} | plain


@dataclass(frozen=True)
class BucketFolder:
    """A folder of a bucket.

    Attributes:
        folder: its key, without a slash at the end; "" is the bucket itself.
        scratch: where files are written before they are uploaded; None for the system's folder.
    """

    bucket: str
    folder: str
    keys: Keys
    scratch: Path | None = None

    def __reduce__(self) -> Any:
        return BucketFolder, (self.bucket, self.folder, self.keys, self.scratch)

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.folder}"

    def table(self) -> tuple[str, Mapping[str, str]]:
        return self.uri, self.keys.options()

    def names(self) -> set[str]:
        with self._errors():
            wanted = fs.FileSelector(self._path.rstrip("/"), allow_not_found=True)
            return {info.base_name for info in self._filesystem.get_file_info(wanted)}

    @contextmanager
    def opened(self, name: str) -> Iterator[BinaryIO]:
        with self._errors():
            file = self._filesystem.open_input_file(self._path + name)
        with file:
            yield cast(BinaryIO, file)

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        with tempfile.TemporaryFile(dir=self.scratch) as file:
            yield cast(BinaryIO, file)
            file.seek(0)
            with self._errors():
                filesystem: Any = self._filesystem
                with filesystem.open_output_stream(self._path + name) as upload:
                    shutil.copyfileobj(file, upload, CHUNK)

    def clear(self) -> None:
        """Nothing: an upload that was cut off is no file."""

    @cached_property
    def _filesystem(self) -> fs.S3FileSystem:
        return self.keys.filesystem()

    @property
    def _path(self) -> str:
        return f"{self.bucket}/{self.folder}/" if self.folder else f"{self.bucket}/"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Around requests: errors name the URI, and say who has to do something."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            message = str(error).partition("(Request ID")[0].strip()
            if any(mark in message for mark in REFUSED):
                raise Invalid([(URI, f"{self.uri}: the bucket refuses: {message}")]) from None
            raise Unavailable(f"{self.uri}: {message}") from None
