"""What predictions are written into."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import pyarrow as pa

Json = dict[str, Any]


class Target(Protocol):
    """Parts of a table, each of which is there whole or not at all, and only once."""

    def begin(self, about: Json, schema: pa.Schema) -> None:
        """Prepare the place for a run. A second call with the same arguments changes nothing.

        Args:
            about: the run: its model, options and rows.

        Raises:
            Conflict: the place holds something else.
        """

    def there(self, parts: Sequence[str]) -> dict[str, int]:
        """The number of rows of each of these parts that is there."""

    def add(
        self,
        part: str,
        tables: Iterable[pa.Table],
        schema: pa.Schema,
        show: Callable[[int], None],
    ) -> int:
        """Write a part. Returns its number of rows. A part that is there is not there twice."""

    def end(self, parts: Sequence[str]) -> bool:
        """If all parts are there, say so in the place. Returns whether they are."""
