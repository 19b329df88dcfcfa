"""The memory and the time of an upload of Parquet that is larger than memory.

    python -m benchmarks.table_upload --rows 2000000 --budget 1073741824

It writes the generated table of `benchmarks.table_memory` as Parquet, row group by row group, and
reads it as an upload is read, in a child process. It prints the child's peak of memory without
pages of files, which the kernel drops when it needs them.
"""

import argparse
import json
import resource
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from benchmarks.table_memory import BLOCK, Peak, block
from core.datasets.apart import Workplace, ingested
from core.datasets.files.ingest import Given
from core.datasets.files.opening import opened
from core.process.memory_budget import MemoryBudget

PARQUET = "application/vnd.apache.parquet"
MEBIBYTE = 2**20


def write(path: Path, rows: int) -> int:
    """Write the table. Returns its decoded bytes."""
    size = 0
    with parquet.ParquetWriter(path, block(0, 1).schema) as writer:
        for start in range(0, rows, BLOCK):
            part = block(start, min(BLOCK, rows - start))
            size += part.nbytes
            writer.write_batch(part)
    return size


def child_bytes() -> int:
    """Memory of this process's children that is not pages of files."""
    children = Path("/proc/self/task").glob("*/children")
    found = 0
    for child in " ".join(one.read_text() for one in children).split():
        with suppress(OSError, KeyError):  # it has ended
            lines = Path(f"/proc/{child}/status").read_text().splitlines()
            found += int(dict(line.split(":", 1) for line in lines)["RssAnon"].split()[0]) * 1024
    return found


@contextmanager
def watched() -> Iterator[Peak]:
    """The peak of the children's memory, every 20 ms."""
    peak = Peak()

    def watch() -> None:
        while not peak.done.wait(0.02):
            peak.bytes = max(peak.bytes, child_bytes())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        peak.done.set()
        thread.join()


def measure(rows: int, budget: int, max_bytes: int, folder: Path) -> dict[str, float]:
    path = folder / "table.parquet"
    decoded = write(path, rows)
    at = Workplace(max_bytes, MemoryBudget(budget), folder)
    started = time.perf_counter()
    with watched() as peak, opened(path, PARQUET, max_bytes, folder) as file:
        with ingested(file, Given(), at) as found:
            assert found.table.num_rows == rows
        seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "rows": rows,
        "file_mib": round(path.stat().st_size / MEBIBYTE),
        "decoded_mib": round(decoded / MEBIBYTE),
        "budget_mib": round(budget / MEBIBYTE),
        "peak_mib": round(peak.bytes / MEBIBYTE),
        "seconds": round(seconds, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--budget", type=int, default=2**30, help="bytes of CREDENCE_MEMORY_BYTES")
    parser.add_argument("--max-bytes", type=int, default=2**36, help="of a data set")
    given = parser.parse_args()
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        print(
            json.dumps(measure(given.rows, given.budget, given.max_bytes, Path(folder)), indent=1)
        )


if __name__ == "__main__":
    main()
