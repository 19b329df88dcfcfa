"""URIs of sources, strictly: each has one spelling, so that a prefix cannot be passed by.

`..`, empty segments, backslashes, user names, queries, and percent signs that hide a separator are
refused by name. Schemes and hosts are compared in lower case, ports as numbers.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote

SCHEMES = ("file", "s3", "https")
EXAMPLE = "file:///folder/*.parquet, s3://bucket/folder/*.parquet or https://host/file.csv"
WILDCARDS = "*?"

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(/.*)?", re.DOTALL)
_HOST = re.compile(r"(?P<name>[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)(:(?P<port>[0-9]{1,5}))?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


@dataclass(frozen=True)
class Uri:
    """A URI's parts, decoded.

    Args:
        authority: the bucket; the host as `name:port`; "" of a local file.
        segments: of the path; the last one of a folder is "".
    """

    scheme: str
    authority: str
    segments: tuple[str, ...]

    @property
    def path(self) -> str:
        """The path without its first slash; a folder's ends in one."""
        return "/".join(self.segments)

    @property
    def is_folder(self) -> bool:
        return self.segments[-1] == ""

    @property
    def fixed(self) -> tuple[str, ...]:
        """The folders before the first one with a wildcard, or before the file's name."""
        for place, segment in enumerate(self.segments[:-1]):
            if any(mark in segment for mark in WILDCARDS):
                return self.segments[:place]
        return self.segments[:-1]

    @property
    def has_wildcard(self) -> bool:
        return any(mark in segment for segment in self.segments for mark in WILDCARDS)

    def __str__(self) -> str:
        authority = self.authority.removesuffix(":443")
        return f"{self.scheme}://{authority}/{self.path}"


def parse(text: str) -> Uri:
    """The URI.

    Raises:
        ValueError: it has another scheme, or a spelling that is refused; the message says which.
    """
    if not text.isprintable() or " " in text.strip() or text != text.strip():
        raise ValueError(f"has blanks or control characters: give {EXAMPLE}")
    if "\\" in text:
        raise ValueError("has a backslash: write /")
    match = _URI.fullmatch(text)
    scheme = match[1].lower() if match else ""
    if match is None or scheme not in SCHEMES:
        raise ValueError(f"is not read: give {EXAMPLE}")
    rest = match[3] or "/"
    return Uri(scheme, _authority(scheme, match[2]), _segments(scheme, rest[1:]))


def _authority(scheme: str, given: str) -> str:
    if "@" in given:
        raise ValueError("has a user name or password: the operator's secrets hold credentials")
    if scheme == "file":
        if given:
            raise ValueError(f"names the host {given!r}: local files begin with file:///")
        return ""
    if scheme == "s3":
        if not _BUCKET.fullmatch(given):
            raise ValueError(f"{given!r} is no bucket: give s3://bucket/folder/file")
        return given
    match = _HOST.fullmatch(given.lower())
    if match is None:
        raise ValueError(f"{given!r} is no host name: give https://host/file or https://host:port/")
    return f"{match['name']}:{int(match['port'] or 443)}"


def _segments(scheme: str, path: str) -> tuple[str, ...]:
    if scheme != "s3":  # keys of a bucket are what they are written as
        if "?" in path and scheme == "https":
            raise ValueError(
                "has a query, which may hold a credential and would be kept: leave out ? and what "
                "follows"
            )
        if "#" in path:
            raise ValueError("has a fragment: leave out # and what follows")
        path = _decoded(path)
    segments = tuple(path.split("/"))
    for segment in segments:
        if segment in (".", ".."):
            raise ValueError(f"has the folder {segment!r}: name the folder itself")
    if "" in segments[:-1]:
        raise ValueError("has an empty folder name (//): write one /")
    return segments


def _decoded(path: str) -> str:
    """The path with percent signs decoded once; what they must not hide is refused."""
    for escape in re.findall(r"%.{0,2}", path):
        if not re.fullmatch(r"%[0-9A-Fa-f]{2}", escape) or unquote(escape) in "/\\%":
            raise ValueError(f"has {escape!r}: write separators as /, and no coded % signs")
    try:
        decoded = unquote(path, errors="strict")
    except UnicodeDecodeError as error:
        raise ValueError("has percent signs that do not code UTF-8") from error
    if not decoded.isprintable():
        raise ValueError("has coded control characters")
    return decoded
