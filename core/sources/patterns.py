"""Patterns of file names: `*` and `?` within a name, `**` for any folders."""

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
    last = len(segments) - 1
    parts = []
    for place, segment in enumerate(segments):
        if segment == ALL_BELOW and place < last:
            parts.append("(?:[^/]+/)*")
        else:
            parts.append("".join(map(_one, segment)) + ("" if place == last else "/"))
    return parts


def _one(sign: str) -> str:
    return {"*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign))
