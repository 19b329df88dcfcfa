"""Copies of files in a folder of ours, under the paths that they had."""

from collections.abc import Iterable
from pathlib import Path

from core.exceptions import Invalid
from core.sources.budget import Budget, check_number
from core.sources.places.place import File, Place
from core.sources.rules import URI

MAX_NAME = 255


def copy_files(
    place: Place, files: Iterable[File], below: str, folder: Path, budget: Budget
) -> list[File]:
    """Copy files to `folder`, each at its path after `below`. Returns them as they were read."""
    read: list[File] = []
    for file in files:
        check_number(len(read) + 1)
        read.append(place.fetch(file, local(folder, file.path.removeprefix(below)), budget))
    return read


def local(folder: Path, path: str) -> Path:
    """Where the copy of a file lies. Raises `Invalid` if that would not be in the folder."""
    parts = path.split("/")
    plain = all(part not in ("", ".", "..") and "\0" not in part for part in parts)
    if not plain or any(len(part.encode()) > MAX_NAME for part in parts):
        raise Invalid([(URI, f"a file's path {path[:200]!r} cannot be used here")])
    return folder.joinpath(*parts)
