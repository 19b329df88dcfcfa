"""A version's files as one tar: how they travel from an installation to another.

Plain tar, or tar in gzip, of the files of an artifact (`models.artifact.files`) and nothing else:
no folders, links or devices. `origin.json` tells where it was exported: it is provenance, which
nobody verifies, and no part of the artifact.
"""

import gzip
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from core.exceptions import Invalid, NotParseable, TooLarge
from models.artifact.files import CARD, MANIFEST, MODEL

ORIGIN = "origin.json"
MAX_JSON_BYTES = 64 * 2**20

_VARIANT = re.compile(r"prune-(0|0\.\d{1,16}|\d(\.\d{1,5})?e-\d{2})\.safetensors")
_CHUNK = 2**20
_GZIP = b"\x1f\x8b"


def pack(directory: Path, origin: bytes | None = None) -> Iterator[bytes]:
    """The archive, a piece at a time; equal files make equal bytes."""
    for path in sorted(directory.iterdir()):
        yield _header(path.name, path.stat().st_size)
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
        yield _padding(path.stat().st_size)
    if origin is not None:
        yield _header(ORIGIN, len(origin)) + origin + _padding(len(origin))
    yield bytes(2 * tarfile.BLOCKSIZE)


def unpack(archive: Path, directory: Path, max_bytes: int) -> None:
    """Writes the files of an archive into a new directory.

    Raises:
        NotParseable: if it is no tar, or it or its gzip is damaged.
        Invalid: naming the first member that is no file of an artifact.
        TooLarge: if the files have more bytes than the limit.
    """
    directory.mkdir()
    try:
        with archive.open("rb") as file:
            _unpack(_plain(file), directory, max_bytes)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError) as error:
        raise NotParseable("this is no tar archive, or it is damaged") from error


def _unpack(plain: BinaryIO, directory: Path, max_bytes: int) -> None:
    """Header by header, each checked before a byte behind it is read.

    `tarfile` would read the extensions of a header into memory, however long they claim to be.
    """
    room, names = max_bytes, set[str]()
    while any(block := _read(plain, tarfile.BLOCKSIZE)):
        member = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        _check(member, names)
        names.add(member.name)
        room -= member.size
        if room < 0:
            raise TooLarge(f"the archive's files have more than {max_bytes} bytes")
        with (directory / member.name).open("xb") as target:
            for start in range(0, member.size, _CHUNK):
                target.write(_read(plain, min(_CHUNK, member.size - start)))
        _read(plain, len(_padding(member.size)))
    if any(plain.read(_CHUNK)) or plain.read(1):  # also has the sum of a gzip checked
        raise tarfile.ReadError("something comes after the end")


def _read(plain: BinaryIO, size: int) -> bytes:
    data = plain.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _check(member: tarfile.TarInfo, names: set[str]) -> None:
    """Raise `Invalid` unless the member is a file that an artifact has, for the first time."""
    name = member.name
    shown = f"/{name[:80]}"
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.size < 0:
        message = "is no plain file: an archive holds files alone (tar --format=ustar, no folder)"
        raise Invalid([(shown, message)])
    if name not in (MODEL, CARD, MANIFEST, ORIGIN) and not _VARIANT.fullmatch(name):
        expected = f"{MANIFEST}, {MODEL}, {CARD}, {ORIGIN} and prune-….safetensors"
        raise Invalid([(shown, f"is no file of a version: those are {expected}")])
    if name in names:
        raise Invalid([(shown, "comes twice")])
    if name.endswith(".json") and member.size > MAX_JSON_BYTES:
        raise Invalid([(shown, f"has {member.size} bytes: at most {MAX_JSON_BYTES} are read")])


def _plain(file: BinaryIO) -> BinaryIO:
    magic = file.read(2)
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if magic == _GZIP else file  # type: ignore[return-value]


def _header(name: str, size: int) -> bytes:
    """Without time and owner, of which nothing is to be known elsewhere."""
    member = tarfile.TarInfo(name)
    member.size = size
    return member.tobuf(tarfile.USTAR_FORMAT if size < 8**11 else tarfile.GNU_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
