"""Results of offline predictions: a Parquet file per chunk, downloaded as one file in row order.

The files are joined during the download, row group by row group. So there is no step after the last
chunk that could fail, and memory does not grow with the rows.
"""

import io
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from core.exceptions import Conflict, LostClaim, NotFound
from core.jobs.jobs import ChunkSpec, Claim, Jobs, JobStatus
from core.storage import ArtifactStore

GROUP_BYTES = 2**24  # of a row group in memory
MAX_GROUP_ROWS = 2**16


class Results:
    """The files of results. The chunks' rows in the database name the files of a result."""

    def __init__(self, jobs: Jobs, store: ArtifactStore) -> None:
        self.jobs = jobs
        self._store = store

    def publish(self, claim: Claim, spec: ChunkSpec, path: Path) -> JobStatus:
        """Store a chunk's file, then end the chunk. Returns the chunk's status.

        Only this attempt uses the file's key. A crash between the two steps leaves a file without a
        row, which the next attempt removes.

        Raises:
            LostClaim: another attempt has the chunk; the file is deleted.
        """
        for attempt in range(1, claim.attempt + 1):
            self._store.delete(part_key(spec, attempt))
        key = part_key(spec, claim.attempt)
        self._store.put_file(key, path)
        try:
            status = self.jobs.finish(claim, JobStatus.SUCCEEDED)
        except LostClaim:  # after other errors the chunk may have ended: a sweep checks it
            self._store.delete(key)
            raise
        if status is not JobStatus.SUCCEEDED:
            self._store.delete(key)
        return status

    def paths(self, job_id: str) -> Iterator[Path]:
        """The files that make up a job's result, in row order.

        The first is on this machine when this returns, each other file when it is iterated:
        together they may be larger than the store's local cache.

        Raises:
            NotFound: the job does not exist, or is not an offline prediction.
            Conflict: it has not succeeded, or its result is in its destination.
        """
        job = self.jobs.get(job_id)
        if job.kind != "predict":
            raise NotFound("result of job", job_id)
        if job.status is not JobStatus.SUCCEEDED:
            raise Conflict(f"job {job_id} is {job.status}: it has a result once it has succeeded")
        if destination := job.spec.get("destination"):
            raise Conflict(f"job {job_id} has written its result to {destination['uri']}")
        chunks = self.jobs.parts(job_id)
        keys = [part_key(ChunkSpec.model_validate(chunk.spec), chunk.attempt) for chunk in chunks]
        first = self._store.local_path(keys[0])
        return chain([first], map(self._store.local_path, keys[1:]))


def parts_key(job_id: str) -> str:
    """The key under which all files of a job's result are stored."""
    return f"results/{job_id}"


def open_writer(file: Path | pa.NativeFile, schema: pa.Schema) -> parquet.ParquetWriter:
    """A Parquet writer without dictionaries: numbers rarely repeat, and zstd packs labels."""
    return parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=False)


def join(paths: Iterable[Path]) -> Iterator[bytes]:
    """The bytes of one Parquet file with the rows of several with the same columns."""
    files = iter(paths)
    first = next(files)
    schema, sink = parquet.read_schema(first), _Sink()
    rows = max(1, min(MAX_GROUP_ROWS, GROUP_BYTES // (8 * len(schema))))
    file = pa.PythonFile(sink, mode="w")
    with open_writer(file, schema) as writer:
        for path in chain([first], files):
            with parquet.ParquetFile(path) as part:
                for batch in part.iter_batches(batch_size=rows):
                    writer.write_batch(batch)
                    yield sink.take()
    yield sink.take()


class _Sink(io.RawIOBase):
    """A file in memory that keeps only what `take` has not returned yet."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._position = 0  # in the whole file; the footer needs it

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._kept.append(bytes(data))
        self._position += len(self._kept[-1])
        return len(self._kept[-1])

    def tell(self) -> int:
        return self._position

    def take(self) -> bytes:
        """The bytes written since the last call."""
        taken, self._kept = b"".join(self._kept), []
        return taken


def part_key(spec: ChunkSpec, attempt: int) -> str:
    """The key of one chunk's file, written by one attempt."""
    return f"{parts_key(spec.job)}/{spec.chunk:04d}-{attempt}.parquet"
