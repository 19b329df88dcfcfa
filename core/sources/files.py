"""From a URI to one file in a folder of ours, with what was read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.datasets.formats import MEDIA_TYPES
from core.exceptions import Invalid
from core.process.confined import Json
from core.sources.budget import Budget
from core.sources.lakes import delta, iceberg, many
from core.sources.lakes.copies import copy_files
from core.sources.patterns import is_hidden, pattern
from core.sources.places.folder import Folder
from core.sources.places.place import File, Place
from core.sources.places.web import Web
from core.sources.rules import URI, Rules
from core.sources.secrets import HttpsSecret, S3Secret, Secrets, find_for
from core.sources.source import UriSource
from core.sources.uris import Uri, parse

POINTER = "/source/secret"
SHOWN_FILES = 100
LAKES = {"delta": delta.read, "iceberg": iceberg.read}
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "records",
    ".txt": "text",
    ".arrow": "arrow",
    ".feather": "feather",
    ".orc": "orc",
    ".npz": "npz",
}
FOUND_OUT = "application/octet-stream"


@dataclass(frozen=True)
class Fetched:
    """A file in a folder of ours, ready to become a data set.

    Args:
        format: of the source, as it was found out; a lake's is not that of the file.
        snapshot: what was read: files, or the version of a table.
    """

    path: Path
    media_type: str
    format: str | None
    snapshot: Json


def fetch(  # noqa: PLR0917
    source: UriSource,
    rules: Rules,
    secrets: Secrets,
    owner: str,
    folder: Path,
    budget: Budget,
    *,
    header: bool = True,
) -> Fetched:
    """Read a source into one file in `folder`.

    Args:
        header: whether CSV files begin with the names of their columns.

    Raises:
        Invalid: the URI is wrong, closed, or leads to nothing that is read.
        NotParseable, TooLarge, UnsupportedFormat, Unavailable: see the places and formats.
    """
    try:
        uri = parse(source.uri)
    except ValueError as error:
        raise Invalid([(URI, f"{source.uri[:200]!r} {error}")]) from error
    if source.format in LAKES and not uri.is_folder:
        uri = replace(uri, segments=(*uri.segments, ""))
    entry = rules.check_uri(uri)
    place = _place(uri, entry, _secret(source, uri, secrets, owner))
    read = _Reading(uri, place, folder, budget)
    if source.format in LAKES:
        return read.lake(source.format)
    if not (uri.is_folder or uri.has_wildcard):
        return read.files([File(uri.path, None, None)], source.format, header=header)
    below = "/".join((*uri.fixed, ""))
    found = list(place.files(below.lstrip("/"), budget))
    if source.format is None and uri.is_folder:
        if delta.is_table(found, uri.path):
            return read.lake("delta")
        if iceberg.is_table(found, uri.path):
            return read.lake("iceberg")
    return read.files(_matching(found, uri), source.format, header=header)


@dataclass(frozen=True)
class _Reading:
    uri: Uri
    place: Place
    folder: Path
    budget: Budget

    def lake(self, format_: str) -> Fetched:
        """The newest version of a table."""
        if self.uri.has_wildcard:
            raise Invalid([(URI, f"{self.uri} has a wildcard: name the folder of the table")])
        to = self._target("parquet")
        about, count = LAKES[format_](self.place, self.uri.path, self._copies(), to, self.budget)
        snapshot = about | {"num_files": count, "bytes": self.budget.taken}
        return Fetched(to, MEDIA_TYPES_OF["parquet"], format_, snapshot)

    def files(self, wanted: Sequence[File], format_: str | None, *, header: bool) -> Fetched:
        """One file as it is, or several made one."""
        below = "/".join((*self.uri.fixed, "")).lstrip("/")
        copies = self._copies()
        read = copy_files(self.place, wanted, below, copies, self.budget)
        paths = [copies.joinpath(*file.path.removeprefix(below).split("/")) for file in read]
        kind = format_ or _by_suffix(read[0].path)
        media_type = FOUND_OUT if kind is None else MEDIA_TYPES_OF[kind]
        path = paths[0]
        if len(read) > 1 or "=" in read[0].path.removeprefix(below).rpartition("/")[0]:
            path = self._target("joined")
            kind = many.join(paths, media_type, copies, path, self.budget, header=header)
            media_type = MEDIA_TYPES_OF[kind]
        files = [
            {"path": file.path, "bytes": file.bytes, "tag": file.tag} for file in read[:SHOWN_FILES]
        ]
        snapshot = {"files": files, "num_files": len(read), "bytes": self.budget.taken}
        return Fetched(path, media_type, kind, snapshot)

    def _copies(self) -> Path:
        copies = self.folder / "copies"
        copies.mkdir(exist_ok=True)
        return copies

    def _target(self, name: str) -> Path:
        """A file beside the copies, in the folder that DuckDB may write."""
        return self._copies() / f".{name}"


MEDIA_TYPES_OF = {name: media for media, name in reversed(list(MEDIA_TYPES.items()))}


def _matching(found: Sequence[File], uri: Uri) -> list[File]:
    """The files that match, in the order of their paths; hidden ones only if they are named."""
    below = len("/".join((*uri.fixed, "")).lstrip("/"))
    wanted = pattern(uri)
    matching = [file for file in found if wanted.fullmatch(file.path)]
    matching = [file for file in matching if not is_hidden(file.path[below:])]
    if not matching:
        raise Invalid([(URI, f"{uri}: no file matches")])
    return sorted(matching, key=lambda file: file.path)


def _by_suffix(path: str) -> str | None:
    name = path.rpartition("/")[2].lower()
    for packing in (".gz", ".zst", ".bz2"):
        name = name.removesuffix(packing)
    return SUFFIXES.get("." + name.rpartition(".")[2])


def _place(uri: Uri, entry: Uri, secret: S3Secret | HttpsSecret | None) -> Place:
    if uri.scheme == "file":
        return Folder(entry)
    if uri.scheme == "s3":
        assert not isinstance(secret, HttpsSecret)
        # imported here, because boto3 takes a quarter of a second
        from core.sources.places.bucket import Bucket  # noqa: PLC0415

        return Bucket(uri.authority, secret)
    assert not isinstance(secret, S3Secret)
    return Web(uri.authority, secret)


def _secret(
    source: UriSource, uri: Uri, secrets: Secrets, owner: str
) -> S3Secret | HttpsSecret | None:
    if source.secret is None:
        return None
    return find_for(uri, source.secret, secrets, owner, POINTER)
