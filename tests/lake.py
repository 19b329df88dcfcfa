"""A Parquet lake in a bucket, and a service that reads it and writes beside it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.destinations.bucket import Keys
from tests.core.s3 import KEY, SECRET, S3Server, running_rclone

SLOPES = {"oak": 3.0, "elm": 2.0, "ash": -3.0}  # of the price, by wood
NOISE = 0.1
CHECKSUMS = {"AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}  # rclone's server wants lengths
FIRST_DAY = np.datetime64("2026-01-01", "us")
TRAINING: Mapping[str, Any] = {
    "target": "price",
    "features": ["size", "wood"],
    "network": {"hidden": [16]},
    "pruning": [],
    "training": {
        "epochs": 60,
        "batch_size": 64,
        "learning_rate": 0.02,
        "fine_tune_epochs": 1,
        "refit": False,
        "validation_fraction": 0.2,
        "split": {"time": "day"},
    },
}


@dataclass(frozen=True)
class Lake:
    """The bucket `lake`, with rows in `rows/`.

    Attributes:
        folder: where the server keeps the bucket.
    """

    folder: Path
    server: S3Server

    uri = "s3://lake/rows/*.parquet"

    def add(self, name: str, rows: pa.Table) -> None:
        """Put a file, through the server, which would not look into the folder again."""
        keys = Keys(KEY, SECRET, endpoint=self.server.url, region="us-east-1")
        pq.write_table(rows, f"lake/rows/{name}.parquet", filesystem=keys.filesystem())

    @property
    def rows(self) -> pa.Table:
        return pq.read_table(self.folder / "rows")

    def predictions(self, name: str) -> pa.Table:
        """What was written to a destination, by key."""
        return pa.concat_tables(map(pq.read_table, self.parts(name))).sort_by("key")

    def parts(self, name: str) -> list[Path]:
        return sorted((self.folder / "scored" / name).glob("part-*.parquet"))

    def settings(self, secrets: Path) -> dict[str, str]:
        """What a service needs to read the rows and to write to `scored/`."""
        secrets.write_text(
            f'[lake]\nkind = "s3"\naccess_key = "{KEY}"\nsecret_key = "{SECRET}"\n'
            f'endpoint = "{self.server.url}"\n'
        )
        return {
            "CREDENCE_SOURCES": "s3://lake/rows/",
            "CREDENCE_DESTINATIONS": "s3://lake/scored/",
            "CREDENCE_SOURCE_SECRETS_FILE": str(secrets),
            "CREDENCE_LEASE_SECONDS": "3",
            "CREDENCE_THREADS": "1",
            **CHECKSUMS,
        }

    @property
    def environment(self) -> dict[str, str]:
        """What a command needs to do the same."""
        return dict(os.environ) | self.server.environment | CHECKSUMS


@contextmanager
def running_lake(folder: Path) -> Iterator[Lake]:
    """An S3 server with a lake that has no rows yet."""
    (folder / "s3" / "lake" / "rows").mkdir(parents=True)
    with running_rclone(folder / "s3") as server, mock.patch.dict(os.environ, CHECKSUMS):
        yield Lake(folder / "s3" / "lake", server)


def sales(
    first: int, count: int, woods: Sequence[str] = tuple(SLOPES), sign: float = 1.0
) -> pa.Table:
    """Rows with the keys `first`, `first` + 1, …, one a minute: price = ± slope · size + noise."""
    random = np.random.default_rng(first)
    size = random.uniform(-1, 1, count)
    wood = random.choice(woods, count)
    slope = np.array([SLOPES[name] for name in wood])
    key = np.arange(first, first + count)
    return pa.table(
        {
            "key": key,
            "day": FIRST_DAY + key.astype("timedelta64[m]"),
            "size": size,
            "wood": wood.tolist(),
            "price": sign * slope * size + random.normal(0, NOISE, count),
        }
    )
