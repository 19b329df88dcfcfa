"""The errors that `models` raises. Their messages are written for the user."""

from collections.abc import Sequence


def _listed(word: str, numbers: Sequence[int]) -> str:
    """Numbers after the word for each: rows 1, 2 and 3."""
    *others, last = map(str, numbers)
    return f"{word}s {', '.join(others)} and {last}" if others else f"{word} {last}"


class ModelError(ValueError):
    """Base of all errors of this package; `path` is a JSON pointer to the wrong value, or ""."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path


class InvalidData(ModelError):
    """The training data and the configuration do not fit together.

    Args:
        rows: numbers of the rows that it is about, counting from 0; the message names them.
    """

    def __init__(self, message: str, path: str = "", rows: Sequence[int] = ()) -> None:
        where = f" ({_listed('row', rows)}, counting from 0)" if rows else ""
        super().__init__(message + where, path)
        self.plain, self.rows = message, list(rows)

    def in_file(self, first_line: int) -> "InvalidData":
        """The same with the lines of the rows. `first_line` is that of row 0."""
        lines = _listed("line", [first_line + row for row in self.rows])
        return InvalidData(f"{self.plain} ({lines})", self.path)


class InvalidInput(ModelError):
    """A prediction has an input or an option that this model does not support."""


class UnknownVariant(InvalidInput):
    """No variant is stored for this pruning fraction."""


class Diverged(ModelError):
    """Training produced a number that is not finite; the message says which and what to change.

    `what` is only the first sentence, without advice.
    """

    @property
    def what(self) -> str:
        return self.message.split(". ")[0]


class CorruptArtifact(ModelError):
    """The files of a stored model do not match their description or their checksums."""


class Stopped(Exception):
    """Training was stopped between two mini-batches, after its checkpoint was written."""
