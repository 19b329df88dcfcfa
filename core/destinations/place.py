"""What all places do that predictions are written to."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

URI = "/destination/uri"


class Place(Protocol):
    """A folder of this machine or of a bucket. It can be sent to workers."""

    @property
    def uri(self) -> str:
        """Its name in messages."""

    def table(self) -> tuple[str, Mapping[str, str]]:
        """Path or URI, and the options, by which `deltalake` opens the folder; it exists then.

        Raises:
            Invalid: the folder, or its log, is a symbolic link.
        """

    def names(self) -> set[str]:
        """Files and folders directly in it; none if it does not exist.

        Raises:
            Invalid: it may not be read, or a symbolic link leads there.
            Unavailable: the place does not answer.
        """

    def opened(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A file of it, to be read. Raises as `names`, and `FileNotFoundError`."""

    def writing(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A file to write, which gets its name when the block ends without an error.

        A file of this name is replaced. Until then no reader sees anything. Raises as `names`.
        """

    def clear(self) -> None:
        """Remove what processes that were killed have left."""
