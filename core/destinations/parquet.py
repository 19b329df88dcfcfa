"""Predictions as Parquet files in a folder.

_manifest.json                    what the files are of: written first, and never changed
part-00000-0123456789ab.parquet   a part: written whole, under its name only at the end
_SUCCESS                          the numbers of rows: written last
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.destinations.parts import write_part
from core.destinations.place import Place
from core.destinations.target import Json
from core.exceptions import Conflict

MANIFEST, SUCCESS = "_manifest.json", "_SUCCESS"


@dataclass(frozen=True)
class ParquetFolder:
    """A folder that has the predictions of one run, and nothing else."""

    place: Place

    def check_free(self) -> None:
        """Raise `Conflict` if the folder has files. Hidden ones do not count."""
        names = self.place.names()
        if MANIFEST in names:
            raise Conflict(f"{self.place.uri} holds the predictions of another run: {_ADVICE}")
        if found := sorted(name for name in names if not name.startswith(".")):
            raise Conflict(f"{self.place.uri} has other files ({found[0]}, …): {_ADVICE}")

    def begin(self, about: Json, schema: pa.Schema) -> None:
        wanted = json.loads(json.dumps(about))
        if MANIFEST in self.place.names():
            with self.place.opened(MANIFEST) as file:
                there = json.loads(file.read())
            if name := next((name for name in wanted if there.get(name) != wanted[name]), None):
                message = f"{self.place.uri} holds predictions with other {name}: {_ADVICE}"
                raise Conflict(f"{message}, or the same {name}")
        else:
            self.check_free()
            self._write(MANIFEST, wanted)

    def there(self, parts: Sequence[str]) -> dict[str, int]:
        names = self.place.names()
        return {part: self._num_rows(part) for part in parts if part in names}

    def add(
        self,
        part: str,
        tables: Iterable[pa.Table],
        schema: pa.Schema,
        show: Callable[[int], None],
    ) -> int:
        return write_part(self.place, part, tables, schema, show)[0]

    def end(self, parts: Sequence[str]) -> bool:
        if not self.place.names().issuperset(parts):
            return False
        rows = self.there(parts)
        self.place.clear()
        self._write(SUCCESS, {"rows": sum(rows.values()), "parts": rows})
        return True

    def _num_rows(self, part: str) -> int:
        with self.place.opened(part) as file:
            return pq.read_metadata(file).num_rows

    def _write(self, name: str, value: Any) -> None:
        with self.place.writing(name) as file:
            file.write(json.dumps(value, indent=1).encode())


_ADVICE = "give an empty folder"
