"""Predicts the parts of a run, in this process or on the workers of Ray or Spark."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from core.destinations.overlap import ahead
from core.destinations.parts import part_name
from core.exceptions import Invalid
from credence.bulk.files import find_files
from credence.bulk.parts import Part, batches, plan
from credence.bulk.places import Format, Target, open_target
from credence.scoring.blocks import Encoded
from credence.scoring.model import LoadedModel
from credence.scoring.tables import select_inputs

Show = Callable[[int], None]


@dataclass(frozen=True)
class Run:
    """What all parts share. It is sent to the workers.

    Attributes:
        id: what tells this run from those of other rows, options or models.
        target: of the predictions; on a cluster all workers must see it.
        keep: names of columns that are copied beside the predictions.
        schema: the columns of the target.
    """

    id: str
    model: LoadedModel
    target: Target
    options: Mapping[str, Any]
    keep: tuple[str, ...]
    schema: pa.Schema

    def name(self, part: Part) -> str:
        """The file of a part."""
        return part_name(self.id, part.number)

    def predict(self, part: Part, show: Show = lambda rows: None) -> int:
        """Write a part, whole. Returns the number of rows; two workers do no harm."""
        return self.target.add(self.name(part), self._tables(part), self.schema, show)

    def _tables(self, part: Part) -> Iterator[pa.Table]:
        """The rows in blocks. A thread reads and encodes, one predicts, and this one makes tables.

        They take turns only where Python runs: networks, encoders and files release its lock.
        """
        blocks, inputs = self.model.blocks(**self.options), self.model.inputs

        def encoded() -> Iterator[tuple[pa.RecordBatch, Encoded]]:
            for batch in batches(part, inputs, self.keep):
                for some in blocks.cut(batch):
                    yield some.select(self.keep), blocks.encode(select_inputs(some, inputs))

        def predicted() -> Iterator[tuple[pa.RecordBatch, tuple[Encoded, Any]]]:
            for kept, rows in ahead(encoded()):
                yield kept, blocks.predict(rows)

        for kept, (rows, prediction) in ahead(predicted()):
            found = blocks.table(rows, prediction)
            names = [*self.keep, *found.column_names]
            yield pa.table([*kept.columns, *found.columns], names=names)


Runner = Callable[[Run, Sequence[Part], Show], None]


def predict_files(
    model: LoadedModel,
    source: str,
    destination: str | Path,
    options: Mapping[str, Any],
    *,
    runner: Runner,
    format_: Format = "parquet",
    keep: Sequence[str] = (),
    show: Show = lambda rows: None,
) -> int:
    """Predict files into a folder or a Delta table; parts that are there are not predicted again.

    Args:
        source: a file, a folder, a Delta table, or a pattern such as `rows/*.parquet`: Parquet or
            CSV, here or in a bucket (`s3://…`).
        destination: a folder here or in a bucket.
        runner: predicts the parts that are not there yet.
        show: gets the numbers of rows as they are done.

    Returns:
        The number of rows of this run in the destination, each counted once.

    Raises:
        FileNotFoundError, UnsupportedFormat: there are no such files.
        Invalid: a column is missing, an option is wrong, or a place refuses.
        Conflict: the destination has something else.
        Unavailable: a bucket does not answer.
    """
    made = model.schema(**options)
    if twice := [name for name in keep if name in made.names]:
        raise Invalid([("/keep", f"a prediction has a column {twice[0]!r}, too")])
    files = find_files(source)
    parts, kept = plan(files, model.inputs, keep)
    about = {
        "model": {"name": model.name, "version": model.version, "digest": model.source.digest},
        "options": dict(options),
        "keep": list(keep),
        "files": [[file.path, file.bytes, file.changed] for file in files],
        "parts": [[part.number, part.file.path, part.row_groups, part.rows] for part in parts],
    }
    target, schema = open_target(str(destination), format_), pa.schema([*kept, *made])
    run = Run(_sum(about), model, target, options, tuple(keep), schema)
    target.begin(about, schema)
    names = {run.name(part): part for part in parts}
    there = target.there([*names])
    for rows in there.values():
        show(rows)
    runner(run, [part for name, part in names.items() if name not in there], show)
    target.end([*names])
    return sum(target.there([*names]).values())


def _sum(about: Any) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
