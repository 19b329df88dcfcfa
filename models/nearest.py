"""The name that was probably meant."""

import difflib
from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`, whatever its case; None if none is like it."""
    folded = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(name.casefold(), list(folded), n=1)
    return folded[near[0]] if near else None


def no_such_column(name: str, known: Iterable[str]) -> str:
    """The message for a column that does not exist: the nearest name, then all names."""
    names = list(known)
    near = nearest_name(name, names)
    meant = "" if near is None else f"did you mean {near!r}? "
    return f"the data set has no column {name!r}; {meant}it has {', '.join(names[:20])}"
