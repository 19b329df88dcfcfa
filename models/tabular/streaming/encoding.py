"""The third pass: encodes the rows to learn from, and writes them to disk in a random order.

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
from models.features.categories import target_scores
from models.features.columns import Columns, select_rows
from models.features.feature_encoder import FeatureEncoder
from models.features.row_weights import class_factors, row_weights
from models.features.rows import Rows
from models.features.targets import ClassTarget
from models.features.weighted import product
from models.tabular.model import TabularModel
from models.tabular.streaming.blocks import Table, row_hashes
from models.tabular.streaming.gathering import TRAINING, Gathered, Sets

_MOST_BITS = 8  # 256 open files
_SHARE = 8  # of the memory, that a bucket takes: it is copied when it is sorted


@dataclass(frozen=True)
class RowEncoder:
    """Encodes rows as `prepare` encodes those of a table in memory.

    Args:
        by_fold: the encoder of each fold's rows: effects of levels are those of other folds' rows.
        class_factors: weights of classes, by their number; None if all are 1.
    """

    model: TabularModel
    by_fold: Mapping[int, FeatureEncoder]
    class_factors: Float[np.ndarray, "classes"] | None

    @classmethod
    def of(cls, model: TabularModel, gathered: Gathered) -> "RowEncoder":
        """An encoder whose effects and class weights are those of the gathered rows."""
        config, target = model.config, model.target
        places = np.union1d(gathered.division.training, gathered.division.stopping)
        learned, factors = select_rows(gathered.columns, places), None
        values, weights = learned[config.target], row_weights(config, learned)
        if isinstance(target, ClassTarget):
            values = target.encode(values).numpy()
            factors = class_factors(config.training, values, weights, len(target.classes))
            weights = product(weights, None if factors is None else factors[values])
        is_class = isinstance(target, ClassTarget)
        scores = target_scores(values, classes=is_class, weights=weights)
        by_fold = model.encoder.by_fold(learned, scores, gathered.folds[places], weights)
        return cls(model, by_fold, factors)

    def encode(
        self, rows: Int[np.ndarray, "rows"], columns: Columns, folds: Int[np.ndarray, "rows"]
    ) -> "EncodedPart":
        """The compact rows, with the numbers of groups if there are any.

        Args:
            rows: their numbers in the table.
        """
        encoder, config = self.model.encoder, self.model.config
        encoded = encoder.encode_folds(self.by_fold, columns, folds)
        targets = self.model.target.encode(columns[config.target]).numpy()
        factors = None if self.class_factors is None else self.class_factors[targets]
        return EncodedPart(
            row_hashes(rows, config.training.seed, "order"),
            self.model.with_groups(encoded, columns).numpy(),
            targets,
            folds,
            product(row_weights(config, columns), factors),
        )


def encoded_parts(table: Table, sets: Sets, encoder: RowEncoder) -> Iterator["EncodedPart"]:
    """The rows to learn from, block by block.

    Raises:
        Stopped: between two blocks.
    """
    for block in table.usable(table.config.columns):
        part = block.part(sets.of_rows(block) == TRAINING)
        yield encoder.encode(part.rows, part.columns, sets.folds(part))


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
        named = [("inputs", np.float32, (width,)), ("targets", kind), ("folds", np.int8), *weights]
        return np.dtype([("hashes", np.uint64), *named])

    def pack(self) -> np.ndarray:
        """The rows in the type of `record`."""
        records = np.empty(len(self.hashes), self.record)
        for name in self.record.names or ():
            records[name] = getattr(self, name)
        return records


def write_shuffled(
    parts: Iterator[EncodedPart],
    num_rows: int,
    folder: Path,
    memory_bytes: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[Rows, Tensor]:
    """Write rows in the order of their hashes; return them with the fold of each.

    Their tensors are files that are mapped into memory.

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
    return Rows(mapped["inputs"], mapped["targets"], mapped.get("weights")), mapped["folds"]


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
