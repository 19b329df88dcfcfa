"""Rows of numbers on disk in a random order, written with bounded memory.

Rows are sorted by a hash. They are first dealt into buckets by the hash's leading bits; each bucket
then fits into memory. The order depends on the hashes alone, not on the blocks or the memory.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped, UInt64
from torch import Tensor

from models.exceptions import Stopped
from models.features.rows import Rows

_MOST_BITS = 8  # 256 open files
_SHARE = 8  # of the memory, that a bucket takes: it is copied when it is sorted


@dataclass(frozen=True)
class EncodedPart:
    """Some rows as they are learned from. `weights` is None if each is 1."""

    hashes: UInt64[np.ndarray, "rows"]
    inputs: Float[np.ndarray, "rows width"]
    targets: Shaped[np.ndarray, "rows"]
    folds: Int[np.ndarray, "rows"]
    weights: Float[np.ndarray, "rows"] | None = None

    @property
    def record(self) -> np.dtype:
        """The type of a row on disk."""
        width, kind = self.inputs.shape[1], self.targets.dtype
        weights = [] if self.weights is None else [("weights", np.float32)]
        own = [("inputs", np.float32, (width,)), ("targets", kind), ("folds", np.int8), *weights]
        return np.dtype([("hashes", np.uint64), *own])

    def pack(self) -> np.ndarray:
        """The rows in the type of `record`."""
        records = np.empty(len(self.hashes), self.record)
        for name in self.record.names or ():
            records[name] = getattr(self, name)
        return records


@dataclass(frozen=True)
class ShuffledRows:
    """Encoded rows and the fold of each. Their tensors are files that are mapped into memory."""

    rows: Rows
    folds: Tensor


def write_shuffled(
    parts: Iterator[EncodedPart],
    num_rows: int,
    folder: Path,
    memory_bytes: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> ShuffledRows:
    """Write rows in the order of their hashes.

    Args:
        parts: all rows, in any order.
        num_rows: how many they are.
        folder: an empty folder, which must outlive the result.

    Raises:
        Stopped: between two buckets.
    """
    first = next(parts)
    record = first.record
    bits = _bits(num_rows * record.itemsize, memory_bytes // _SHARE)
    with ExitStack() as stack:
        buckets = [stack.enter_context((folder / f"bucket-{i}").open("wb")) for i in range(2**bits)]
        _deal(first, buckets, bits)
        for part in parts:
            _deal(part, buckets, bits)
    names = [name for name in record.names or () if name != "hashes"]
    with ExitStack() as stack:
        files = {name: stack.enter_context((folder / name).open("wb")) for name in names}
        for i in range(2**bits):
            if should_stop():
                raise Stopped
            _sort(folder / f"bucket-{i}", record, files)
    mapped = {name: _mapped(folder / name, record[name], num_rows) for name in names}
    rows = Rows(mapped["inputs"], mapped["targets"], mapped.get("weights"))
    return ShuffledRows(rows, mapped["folds"])


def _bits(all_bytes: int, bucket_bytes: int) -> int:
    """The leading bits of a hash that number its bucket."""
    return min(_MOST_BITS, max(0, math.ceil(math.log2(max(1, all_bytes) / bucket_bytes))))


def _deal(part: EncodedPart, buckets: Sequence[BinaryIO], bits: int) -> None:
    """Append the rows of a part to their buckets."""
    records = part.pack()
    records = records[np.argsort(part.hashes, kind="stable")]
    numbers = np.arange(1, len(buckets), dtype=np.uint64) << np.uint64(64 - bits)
    ends = np.searchsorted(records["hashes"], numbers)
    for bucket, own in zip(buckets, np.split(records, ends), strict=True):
        own.tofile(bucket)


def _sort(path: Path, record: np.dtype, files: Mapping[str, BinaryIO]) -> None:
    """Append the rows of a bucket, in order, to the files of their fields; remove the bucket."""
    records = np.fromfile(path, record)
    order = np.argsort(records["hashes"], kind="stable")
    for name, file in files.items():
        records[name][order].tofile(file)
    path.unlink()


def _mapped(path: Path, kind: np.dtype, num_rows: int) -> Tensor:
    """The file as a tensor of which only the pages in use are in memory."""
    base, shape = kind.subdtype or (kind, ())
    wanted = torch.from_numpy(np.empty(0, base)).dtype
    size = num_rows * math.prod(shape)
    if not size:
        return torch.empty((num_rows, *shape), dtype=wanted)
    return torch.from_file(str(path), shared=True, size=size, dtype=wanted).view(num_rows, *shape)
