"""Predictions in a table of Delta Lake.

Each part is one transaction of the table. It has an application's id of its own, by which a reader
of the log knows that the part is there; its version is the part's number of rows. Of two
transactions with one id at a time the table takes one.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import pyarrow as pa

from core.destinations.folder import LOG
from core.destinations.parts import write_part
from core.destinations.place import URI, Place
from core.destinations.target import Json
from core.destinations.types import plain_schema
from core.exceptions import Conflict, Invalid, Unavailable

OWNER = "credence.owner"
REFUSED = ("401", "403", "404", "AccessDenied", "NoSuchBucket")


@dataclass(frozen=True)
class DeltaTable:
    """A table, to which runs append.

    Attributes:
        owner: who may append; kept with the table. None on the command line.
    """

    place: Place
    owner: str | None = None

    def check_free(self) -> None:
        """Raise `Conflict` unless the folder is empty, or has a table of this owner."""
        with self._errors():
            self._table(self.place.names())

    def begin(self, about: Json, schema: pa.Schema) -> None:
        wanted = plain_schema(schema)
        with self._errors():
            table = self._table(self.place.names())
            if table is None:
                self._create(wanted)
                table = self._table({LOG})
            there = pa.schema(table.schema().to_arrow())
        if there != wanted:
            names = ", ".join(_differing(there, wanted)[:5])
            message = f"{self.place.uri} has other columns ({names})"
            raise Conflict(f"{message}: give another folder, or the options of the rows there")

    def there(self, parts: Sequence[str]) -> dict[str, int]:
        with self._errors():
            table = self._table(self.place.names())
            found = {part: None if table is None else _rows(table, part) for part in parts}
        return {part: rows for part, rows in found.items() if rows is not None}

    def add(
        self,
        part: str,
        tables: Iterable[pa.Table],
        schema: pa.Schema,
        show: Callable[[int], None],
    ) -> int:
        if (done := self.there([part])) != {}:
            return done[part]
        wanted = plain_schema(schema)
        rows, num_bytes = write_part(self.place, part, tables, wanted, show)
        with self._errors():
            self._commit(part, rows, num_bytes, wanted)
        return rows

    def end(self, parts: Sequence[str]) -> bool:
        return len(self.there(parts)) == len(parts)

    def _table(self, names: set[str]) -> Any:
        """The table with its newest transactions; None if the folder is empty."""
        if LOG not in names:
            if found := sorted(name for name in names if not name.startswith((".", "part-"))):
                message = f"{self.place.uri} has other files ({found[0]}, …) and no Delta table"
                raise Conflict(f"{message}: give an empty folder, or the folder of a table")
            return None
        uri, options = self.place.table()
        table = deltalake_library().DeltaTable(uri, storage_options=dict(options))
        if self.owner is not None and table.metadata().configuration.get(OWNER) != self.owner:
            message = f"the Delta table {self.place.uri} was not made by {self.owner!r}"
            raise Conflict(f"{message}: give another folder")
        return table

    def _create(self, schema: pa.Schema) -> None:
        """Make the table, unless another worker has just done it."""
        uri, options = self.place.table()
        try:
            deltalake_library().DeltaTable.create(
                uri,
                schema,
                storage_options=dict(options),
                configuration={} if self.owner is None else {OWNER: self.owner},
                raise_if_key_not_exists=False,
            )
        except deltalake_library().exceptions.DeltaError:
            if LOG not in self.place.names():
                raise

    def _commit(self, part: str, rows: int, num_bytes: int, schema: pa.Schema) -> None:
        """Add the file to the table, unless another worker has just added it."""
        delta = deltalake_library()
        action = delta.transaction.AddAction(
            path=part,
            size=num_bytes,
            partition_values={},
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps({"numRecords": rows}),
        )
        once = delta.Transaction(_application(part), rows)
        table = self._table({LOG})
        try:
            table.create_write_transaction(
                [action],
                "append",
                schema,
                commit_properties=delta.CommitProperties(
                    app_transactions=[once], max_commit_retries=RETRIES
                ),
            )
        except delta.exceptions.CommitFailedError:
            if _rows(self._table({LOG}), part) is None:
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Around the library: errors name the table, and say who has to do something."""
        try:
            yield
        except (OSError, deltalake_library().exceptions.DeltaError) as error:
            message = " ".join(str(error).split())[:500]
            if any(mark in message for mark in REFUSED):
                raise Invalid([(URI, f"{self.place.uri} cannot be written: {message}")]) from None
            raise Unavailable(f"{self.place.uri}: {message}") from None


RETRIES = 100  # each is a worker that was faster


def _rows(table: Any, part: str) -> int | None:
    """The number of rows of a part; None if it is not in the table."""
    rows: int | None = table.transaction_version(_application(part))
    return rows


def _differing(there: pa.Schema, wanted: pa.Schema) -> list[str]:
    """Names of columns that one lacks or has in another type; all if only their order differs."""
    names = sorted({*there.names, *wanted.names})
    types = [{field.name: field.type for field in schema} for schema in (there, wanted)]
    return [name for name in names if types[0].get(name) != types[1].get(name)] or names


def _application(part: str) -> str:
    return f"credence/{part}"


@cache
def deltalake_library() -> ModuleType:
    """The package `deltalake`. Raises `ModuleNotFoundError` that says how to install it."""
    try:
        import deltalake  # noqa: PLC0415 - an extra of credence-models
        import deltalake.exceptions  # noqa: PLC0415
        import deltalake.transaction  # noqa: PLC0415
    except ModuleNotFoundError as error:
        message = "deltalake is not installed: pip install deltalake"
        raise ModuleNotFoundError(message) from error
    return deltalake
