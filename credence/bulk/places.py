"""Where rows are read and predictions written: this machine's folders, and `s3://…`.

Keys of a bucket come from the environment, as boto3 and the AWS command line read them.
"""

import os
from pathlib import Path
from typing import Literal, TypeAlias

from pyarrow import fs

from core.destinations.bucket import BucketFolder, Keys
from core.destinations.delta import DeltaTable
from core.destinations.folder import LocalFolder
from core.destinations.parquet import ParquetFolder
from core.destinations.place import Place

S3 = "s3://"
Format = Literal["parquet", "delta"]
Target: TypeAlias = ParquetFolder | DeltaTable


def is_remote(path: str) -> bool:
    """Whether a path is in a bucket."""
    return path.startswith(S3)


def filesystem(path: str) -> tuple[fs.FileSystem, str]:
    """What reads a path, and the path as it knows it."""
    if is_remote(path):
        return _keys().filesystem(), path.removeprefix(S3)
    return fs.LocalFileSystem(), path


def open_target(uri: str, format_: Format) -> Target:
    """The folder or table at a URI.

    Raises:
        ModuleNotFoundError: deltalake is not installed.
    """
    place = folder_at(uri)
    return DeltaTable(place) if format_ == "delta" else ParquetFolder(place)


def delta_options(path: str) -> dict[str, str]:
    """What deltalake needs to open a table at this path."""
    return _keys().options() if is_remote(path) else {}


def folder_at(uri: str) -> Place:
    """A folder, which need not exist yet."""
    if is_remote(uri):
        bucket, _, folder = uri.removeprefix(S3).partition("/")
        return BucketFolder(bucket, folder.strip("/"), _keys())
    path = Path(uri).absolute()
    there = next(one for one in (path, *path.parents) if one.exists())
    return LocalFolder(there, path.relative_to(there).parts)


def _keys() -> Keys:
    """Where the buckets are; who may enter is found out by the libraries themselves."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return Keys(endpoint=endpoint, region=region)
