"""Files in a bucket of S3 or of a server like it, with the keys of a named secret.

Without a secret, requests are not signed: the service's own credentials are never used.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import botocore
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from core.exceptions import Invalid, Unavailable
from core.sources.budget import Budget, check_number
from core.sources.places.place import File, copy
from core.sources.rules import URI
from core.sources.secrets import S3Secret

CONNECT_SECONDS, READ_SECONDS = 10, 30
MISSING = {"404", "NoSuchKey", "NoSuchBucket", "NotFound", "PreconditionFailed", "412"}


class Bucket:
    """The files of one bucket."""

    def __init__(self, name: str, secret: S3Secret | None) -> None:
        self._name = name
        self._client = _client(secret)

    def files(self, below: str, budget: Budget) -> Iterator[File]:
        count = 0
        with self._named(below):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._name, Prefix=below):
                _ = budget.left_seconds
                for entry in page.get("Contents", ()):
                    if not entry["Key"].endswith("/"):  # a mark that stands for a folder
                        count += 1
                        check_number(count)
                        yield File(entry["Key"], entry["Size"], entry["ETag"].strip('"'))

    def fetch(self, file: File, to: Path, budget: Budget) -> File:
        given = {"Bucket": self._name, "Key": file.path}
        if file.tag is not None:
            given["IfMatch"] = f'"{file.tag}"'
        with self._named(file.path):
            answer = self._client.get_object(**given)
            with answer["Body"] as body:
                size = copy(body, to, budget)
            return File(file.path, size, answer["ETag"].strip('"'))

    @contextmanager
    def _named(self, path: str) -> Iterator[None]:
        """Around requests: errors name the URI, and never what was sent."""
        uri = f"s3://{self._name}/{path}"
        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if code in MISSING or status in (404, 412):
                reason = "does not exist, or changed while it was read"
                raise Invalid([(URI, f"{uri}: {reason}")]) from None
            if status in (401, 403):
                raise Invalid([(URI, f"{uri}: the bucket refuses the secret ({code})")]) from None
            raise Unavailable(f"{uri}: the bucket answers {code or status}") from None
        except BotoCoreError as error:
            raise Unavailable(f"{uri}: {type(error).__name__}") from None


def _client(secret: S3Secret | None) -> Any:
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"max_attempts": 3, "mode": "standard"},
        signature_version=botocore.UNSIGNED if secret is None else "s3v4",
        s3={"addressing_style": "path" if secret and secret.endpoint else "auto"},
        proxies={},
    )
    session = boto3.session.Session(
        aws_access_key_id=secret.access_key.get_secret_value() if secret else "none",
        aws_secret_access_key=secret.secret_key.get_secret_value() if secret else "none",
        aws_session_token=secret.session_token.get_secret_value()
        if secret and secret.session_token
        else None,
        region_name=secret.region if secret else "us-east-1",
    )
    # An endpoint of the environment is the artifact store's, not this bucket's.
    endpoint = (secret and secret.endpoint) or None
    config = config.merge(Config(ignore_configured_endpoint_urls=True))
    return session.client("s3", endpoint_url=endpoint, config=config)
