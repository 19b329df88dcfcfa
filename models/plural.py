"""Numbers and names in sentences: `1 row`, `3 rows`, `north, south and 7 more`."""

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """The number and the noun, with an s unless there is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_of(names: Sequence[object], most: int) -> str:
    """The first names, and the number of the others."""
    more = len(names) - most
    found = ", ".join(map(str, names[:most]))
    return f"{found} and {more} more" if more > 0 else found
