"""How long an upload takes, and how much memory: CSV of usual and of extreme shapes.

.venv/bin/python -m benchmarks.uploads             # all, in a fresh process each
.venv/bin/python -m benchmarks.uploads mixed       # one
.venv/bin/python -m benchmarks.uploads --make mixed mixed.csv      # write the file, no more
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from core.database.database import Database, migrate
from core.datasets.datasets import Datasets
from core.storage import DirectoryStore

MEGABYTE = 1e6


def mixed(path: Path, encoding: str = "utf-8") -> None:
    """A million rows of ten columns: whole numbers, decimals, categories, dates, words."""
    rng = np.random.default_rng(0)
    cities = np.array(["Berlin", "Köln", "Roma", "Oslo", "São Paulo", "New York"])
    with path.open("w", encoding=encoding, newline="\n") as file:
        file.write("id,age,income,score,ratio,city,active,day,product,distance\n")
        for start in range(0, 1_000_000, 50_000):
            n = 50_000
            columns = [
                np.arange(start, start + n).astype(str),
                rng.integers(18, 90, n).astype(str),
                np.round(rng.lognormal(10, 1, n), 2).astype(str),
                rng.normal(size=n).astype(str),
                np.round(rng.random(n), 6).astype(str),
                cities[rng.integers(0, len(cities), n)],
                np.array(["true", "false"])[rng.integers(0, 2, n)],
                (np.datetime64("2015-01-01") + rng.integers(0, 3650, n)).astype(str),
                np.char.add("product ", rng.integers(0, 5000, n).astype(str)),
                (1000 * rng.random(n)).astype(str),
            ]
            file.writelines(",".join(row) + "\n" for row in zip(*columns, strict=True))


def latin(path: Path) -> None:
    """The same in cp1252, which has to be found out and transcoded."""
    mixed(path, "cp1252")


def pixels(path: Path) -> None:
    """60,000 rows of 785 small whole numbers, as MNIST is often written."""
    rng = np.random.default_rng(0)
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write(",".join(["label", *(f"pixel{i}" for i in range(784))]) + "\n")
        for _ in range(60):
            values = rng.integers(0, 256, (1000, 785)) * (rng.random((1000, 785)) < 0.2)
            file.writelines(",".join(map(str, row)) + "\n" for row in values.tolist())


def wide(path: Path) -> None:
    """3 rows of 20,000 columns."""
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write(",".join(f"c{i}" for i in range(20_000)) + "\n")
        for row in range(3):
            file.write(",".join(str((i * 7 + row) % 100) for i in range(20_000)) + "\n")


FILES: Mapping[str, Callable[[Path], None]] = {
    "mixed": mixed,
    "latin": latin,
    "pixels": pixels,
    "wide": wide,
}


def measure(path: Path) -> dict[str, float]:
    """Seconds, seconds of the processor and the peak memory of this process, for one file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = Database(f"sqlite:///{folder / 'credence.db'}")
        migrate(database)
        datasets = Datasets(database, DirectoryStore(folder / "store"), scratch=folder)
        before = _peak()
        start, used = time.perf_counter(), time.process_time()
        datasets.add(path.name, "text/csv", path, "0" * 64)
        seconds, used = time.perf_counter() - start, time.process_time() - used
        database.dispose()
    return {"seconds": seconds, "used": used, "peak_mb": _peak(), "before_mb": before}


def _peak() -> float:
    """The peak of the memory of this process, or of a child that has ended, in MB."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(one.ru_maxrss for one in used) * 1024 / MEGABYTE


def main() -> None:
    """Measure each file in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(FILES))
    parser.add_argument("--make", nargs=2, metavar=("NAME", "PATH"))
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.make:
        FILES[args.make[0]](Path(args.make[1]))
        return
    if args.measure:
        print(json.dumps(measure(args.measure)))
        return
    print(
        "| file | MB | seconds | processor seconds | peak MB | of which before |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    for name in args.names:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.csv"
            FILES[name](path)
            command = [sys.executable, "-m", "benchmarks.uploads", "--measure", str(path)]
            found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            print(
                f"| {name} | {path.stat().st_size / MEGABYTE:.0f} | {found['seconds']:.1f} | "
                f"{found['used']:.1f} | {found['peak_mb']:.0f} | {found['before_mb']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
