"""Opens a destination, if the operator lets the caller write there.

`CREDENCE_DESTINATIONS` lists folders, closed by default. It is asked when the job is made, and
again by the worker: a folder that was closed meanwhile gets nothing more.
"""

from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from core.destinations.bucket import BucketFolder, Keys
from core.destinations.delta import DeltaTable
from core.destinations.folder import LocalFolder
from core.destinations.parquet import ParquetFolder
from core.destinations.place import URI, Place
from core.exceptions import Invalid
from core.offline.destination import Destination
from core.settings import Settings
from core.sources.rules import covers, read_folders
from core.sources.secrets import S3Secret, find_for, read_secrets
from core.sources.uris import Uri, parse

SETTING = "CREDENCE_DESTINATIONS"
SECRET = "/destination/secret"  # noqa: S105 - a pointer
Target: TypeAlias = ParquetFolder | DeltaTable


def open_destination(
    destination: Destination, settings: Settings, owner: str, scratch: Path
) -> Target:
    """The folder or table that this owner's predictions are written into.

    Raises:
        Invalid: the URI is wrong or closed, or the secret is not for it; the message says which.
    """
    uri = _uri(destination.uri)
    entry = _entry(uri, settings)
    place: Place
    if uri.scheme == "file":
        if destination.secret is not None:
            raise Invalid([(SECRET, "a folder of this machine needs no secret: leave it out")])
        root, *below = entry.segments[:-1], *uri.segments[len(entry.segments) - 1 : -1]
        place = LocalFolder(Path("/", *root), tuple(map(str, below)))
    else:
        keys, folder = _keys(destination, uri, settings, owner), "/".join(uri.segments[:-1])
        place = BucketFolder(uri.authority, folder, keys, scratch)
    return DeltaTable(place, owner) if destination.format == "delta" else ParquetFolder(place)


def _uri(text: str) -> Uri:
    try:
        uri = parse(text)
    except ValueError as error:
        raise Invalid([(URI, f"{text[:200]!r} {error}")]) from error
    if uri.scheme not in ("file", "s3"):
        raise Invalid([(URI, f"{uri} cannot be written: give file:///folder/ or s3://bucket/…")])
    if uri.has_wildcard:
        raise Invalid([(URI, f"{uri} has a wildcard: name one folder")])
    return uri if uri.is_folder else replace(uri, segments=(*uri.segments, ""))


def _entry(uri: Uri, settings: Settings) -> Uri:
    entries = read_folders(settings.destinations)
    for entry in entries:
        if covers(entry, uri):
            return entry
    closed = "" if entries else "destinations are closed; "
    reason = f"{closed}the operator's setting {SETTING} has to list it, or a folder above"
    raise Invalid([(URI, f"{uri} may not be written: {reason}")])


def _keys(destination: Destination, uri: Uri, settings: Settings, owner: str) -> Keys:
    """The named secret's keys. The service's own are never used."""
    if destination.secret is None:
        raise Invalid([(SECRET, f"{uri} needs the name of a secret, whose keys may write there")])
    secrets = read_secrets(settings.source_secrets_file)
    secret = find_for(uri, destination.secret, secrets, owner, SECRET)
    assert isinstance(secret, S3Secret)
    token = secret.session_token
    return Keys(
        secret.access_key.get_secret_value(),
        secret.secret_key.get_secret_value(),
        None if token is None else token.get_secret_value(),
        # Without one, libraries would take the endpoint of the environment, the artifact store's.
        secret.endpoint or f"https://s3.{secret.region}.amazonaws.com",
        secret.region,
    )
