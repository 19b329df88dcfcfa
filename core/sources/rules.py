"""What may be read: `CREDENCE_SOURCES`, closed by default.

Its entries, separated by commas or blanks, are folders (`s3://lake/sales/`, with a slash at the
end), single files (`https://data.example.org/rates.csv`), and names of databases.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.exceptions import Invalid
from core.sources.uris import Uri, parse

SETTING = "CREDENCE_SOURCES"
URI, DATABASE = "/source/uri", "/source/database"

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True)
class Rules:
    """The folders, files and databases that may be read."""

    uris: tuple[Uri, ...] = ()
    databases: frozenset[str] = frozenset()

    def check_uri(self, uri: Uri) -> Uri:
        """The entry that lets this URI be read.

        Raises:
            Invalid: there is none; the message names the setting.
        """
        for entry in self.uris:
            if covers(entry, uri):
                return entry
        raise Invalid([(URI, f"{uri} may not be read: {self._why('its folder, such as', uri)}")])

    def check_database(self, name: str) -> None:
        """Raise `Invalid` if the database may not be read."""
        if name not in self.databases:
            reason = f"{name!r} may not be read: {self._why('the name', name)}"
            raise Invalid([(DATABASE, reason)])

    def _why(self, what: str, thing: Uri | str) -> str:
        if isinstance(thing, Uri):
            folder = "/".join((*thing.fixed, ""))
            thing = str(Uri(thing.scheme, thing.authority, tuple(folder.split("/"))))
        closed = "" if self.uris or self.databases else "sources are closed; "
        return f"{closed}the operator's setting {SETTING} has to list {what} {thing}"


def covers(entry: Uri, uri: Uri) -> bool:
    """Whether an entry lets a URI be read: a folder all that is below, a file only itself."""
    if (entry.scheme, entry.authority) != (uri.scheme, uri.authority):
        return False
    if not entry.is_folder:
        return entry.segments == uri.segments
    folder = entry.segments[:-1]
    return uri.fixed[: len(folder)] == folder


def read_rules(text: str) -> Rules:
    """The rules that a setting writes.

    Raises:
        ValueError: an entry is neither a URI nor a name.
    """
    entries = [entry for entry in re.split(r"[,\s]+", text) if entry]
    names = frozenset(entry for entry in entries if "://" not in entry)
    if wrong := sorted(name for name in names if not _NAME.fullmatch(name)):
        raise ValueError(f"{wrong[0]!r} is neither a URI nor the name of a database")
    return Rules(read_uris([entry for entry in entries if "://" in entry]), names)


def read_folders(text: str) -> tuple[Uri, ...]:
    """The folders that a setting lists, in which predictions may be written.

    Raises:
        ValueError: an entry is no folder of this machine or of a bucket.
    """
    uris = read_uris([entry for entry in re.split(r"[,\s]+", text) if entry])
    for uri in uris:
        if not uri.is_folder or uri.scheme not in ("file", "s3"):
            raise ValueError(f"{str(uri)!r} is no folder: give file:///folder/ or s3://bucket/")
    return uris


def read_uris(entries: Sequence[str]) -> tuple[Uri, ...]:
    """Folders and files that a setting lists, without wildcards."""
    return tuple(map(_entry, entries))


def _entry(text: str) -> Uri:
    try:
        uri = parse(text)
    except ValueError as error:
        raise ValueError(f"{text!r} {error}") from error
    if uri.has_wildcard:
        raise ValueError(f"{text!r} has a wildcard: give a folder, with / at the end")
    return uri
