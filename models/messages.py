"""Words of messages: the name that was probably meant, numbers and names in sentences."""

from collections.abc import Iterable, Sequence

from rapidfuzz.distance import Indel
from rapidfuzz.process import extractOne

ALIKE = 0.6  # of twice the common letters, in order, to the letters of both names


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`, whatever its case; None if none is like it.

    20,000 names of 256 letters take 20 ms.
    """
    folded = {one.casefold(): one for one in known}
    scorer = Indel.normalized_similarity
    near = extractOne(name.casefold(), list(folded), scorer=scorer, score_cutoff=ALIKE)
    return None if near is None else folded[near[0]]


def no_such_column(name: str, known: Iterable[str]) -> str:
    """The message for a column that does not exist: the nearest name, then all names."""
    names = list(known)
    near = nearest_name(name, names)
    meant = "" if near is None else f"did you mean {near!r}? "
    return f"the data set has no column {name!r}; {meant}it has {', '.join(names[:20])}"


def counted(number: int, noun: str) -> str:
    """The number and the noun, with an s unless there is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_of(names: Sequence[object], most: int) -> str:
    """The first names, and the number of the others."""
    more = len(names) - most
    listed = ", ".join(map(str, names[:most]))
    return f"{listed} and {more} more" if more > 0 else listed
