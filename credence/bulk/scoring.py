"""Predicts the parts of a run, in this process or on the workers of Ray or Spark."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from core.exceptions import Invalid
from credence.bulk.manifest import begin, end, published
from credence.bulk.parts import Part, batches, find_files, plan
from credence.scoring.model import LoadedModel

T = TypeVar("T")
Show = Callable[[int], None]
AHEAD = 2  # batches that are read while one is predicted


@dataclass(frozen=True)
class Run:
    """What all parts share. It is sent to the workers.

    Attributes:
        folder: of the predictions; on a cluster all workers must see it.
        keep: names of columns that are copied beside the predictions.
    """

    model: LoadedModel
    folder: Path
    options: Mapping[str, Any]
    keep: tuple[str, ...]

    def predict(self, part: Part, show: Show = lambda rows: None) -> int:
        """Write the part's file, whole. Returns the number of rows; two workers do no harm."""
        rows = 0
        with published(self.folder / part.file) as hidden:
            schema = self._schema(part)
            texts: Any = [field.name for field in schema if pa.types.is_string(field.type)]
            with (
                pq.ParquetWriter(hidden, schema, use_dictionary=texts) as writer,
                ThreadPoolExecutor(1) as pool,
            ):
                waiting: Future[Any] = pool.submit(int)
                for table in self._tables(part):
                    waiting.result()
                    waiting = pool.submit(writer.write_table, table.cast(schema))
                    rows += table.num_rows
                    show(table.num_rows)
                waiting.result()
        return rows

    def _schema(self, part: Part) -> pa.Schema:
        kept = plan([Path(part.path)], self.model.inputs, self.keep)[1]
        return pa.schema([*kept, *self.model.schema(**self.options)])

    def _tables(self, part: Part) -> Iterator[pa.Table]:
        waiting: deque[pa.RecordBatch] = deque()

        def remembered() -> Iterator[pa.RecordBatch]:
            for batch in ahead(batches(part, self.model.inputs, self.keep)):
                waiting.append(batch)
                yield batch

        for found in self.model.predict_batches(remembered(), **self.options):
            kept = waiting.popleft().select(self.keep)
            names = [*self.keep, *found.column_names]
            yield pa.table([*kept.columns, *found.columns], names=names)


Runner = Callable[[Run, Sequence[Part], Show], None]


def predict_files(
    model: LoadedModel,
    source: str,
    folder: Path,
    options: Mapping[str, Any],
    *,
    runner: Runner,
    keep: Sequence[str] = (),
    show: Show = lambda rows: None,
) -> int:
    """Predict files into a folder of Parquet files; parts that are there are not predicted again.

    Args:
        source: a file, a folder, or a pattern such as `rows/*.parquet`: Parquet or CSV.
        runner: predicts the parts that are not there yet.
        show: gets the numbers of rows as they are done.

    Returns:
        The number of rows in the folder, each counted once.

    Raises:
        FileNotFoundError, UnsupportedFormat: there are no such files.
        Invalid: a column is missing, or an option is wrong.
        Conflict: the folder has predictions of something else.
    """
    made = model.schema(**options)
    if twice := [name for name in keep if name in made.names]:
        raise Invalid([("/keep", f"a prediction has a column {twice[0]!r}, too")])
    files = find_files(source)
    parts, _ = plan(files, model.inputs, keep)
    stats = [(path, path.stat()) for path in files]
    about = {
        "model": {"name": model.name, "version": model.version, "digest": model.source.digest},
        "options": dict(options),
        "keep": list(keep),
        "files": [[str(path), stat.st_size, stat.st_mtime_ns] for path, stat in stats],
    }
    left = begin(folder, about, parts)
    for part in (part for part in parts if part not in left):
        show(pq.read_metadata(folder / part.file).num_rows)
    runner(Run(model, folder.absolute(), options, tuple(keep)), left, show)
    return end(folder, parts)


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The items, which a thread reads `AHEAD` before they are used."""
    waiting: deque[Any] = deque()
    with ThreadPoolExecutor(1) as reader:
        read = partial(reader.submit, next, items, None)
        waiting.extend(read() for _ in range(AHEAD))
        while (item := waiting.popleft().result()) is not None:
            waiting.append(read())
            yield item
