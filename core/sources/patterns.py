"""Patterns of file names: `*` and `?` within a name, `**` for any folders.

What follows a `*` is looked for at its first place only, unless it is the last one. That finds the
same names, because a later `*` matches whatever is left; and the time does not grow with the number
of stars as a power (as Python's `fnmatch` does it).
"""

import re

from core.sources.uris import Uri

ALL_BELOW = "**"


def pattern(uri: Uri) -> re.Pattern[str]:
    """What matches paths, without their first slash. A folder stands for all files below it."""
    segments = (*uri.segments[:-1], ALL_BELOW, "*") if uri.is_folder else uri.segments
    return re.compile("".join(_parts(segments)))


def is_hidden(path: str) -> bool:
    """Whether a name within begins with `_` or `.`: logs and marks of those who wrote the files.

    `_delta_log` is one; a folder `_year=2024` of a partition is none.
    """
    return any(part.startswith((".", "_")) and "=" not in part for part in path.split("/"))


def _parts(segments: tuple[str, ...]) -> list[str]:
    """Regular expressions of the path, one for what is before, between and behind the `**`."""
    *folders, name = segments
    runs: list[list[str]] = [[]]
    for segment in folders:
        if segment == ALL_BELOW:
            runs.append([])
        else:
            runs[-1].append(_segment(segment) + "/")
    first, *others = ("".join(run) for run in runs)
    *middle, last = others or [""]
    found = [first, *(f"(?>(?:[^/]++/)*?{run})" for run in middle if run)]
    return [*found, "(?:[^/]++/)*" if others else "", last, _segment(name)]


def _segment(text: str) -> str:
    """A name within the path: the texts between its stars, in their order."""
    first, *others = ("".join(map(_one, part)) for part in text.split("*"))
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>[^/]*?{part})" for part in middle if part) + f"[^/]*{last}"


def _one(sign: str) -> str:
    return "[^/]" if sign == "?" else re.escape(sign)
