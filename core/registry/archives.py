"""A version's files as one tar, to import into another installation.

The tar, plain or gzipped, holds the files of an artifact (`models.artifact.files`) and no folders,
links or devices. Its `origin.json` says where it was exported. That file is not verified, and not
part of the artifact.
"""

import gzip
import os
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from core.exceptions import Invalid, NotParseable, TooLarge
from core.registry.documents import BOUNDS, ORIGIN, check_length
from models.artifact.files import BACKGROUND, CARD, FEATURES, MANIFEST, MODEL

_VARIANT = re.compile(r"prune-(0|0\.\d{1,16}|\d(\.\d{1,5})?e-\d{2})\.safetensors")
_MEMBER = re.compile(r"target-[1-9]\d?-(?P<name>.+)")  # of several targets all but the first
_CHUNK = 2**20
MOST_FILES = 1_000  # more do not fit into a manifest (`core.registry.documents`)
_GZIP = b"\x1f\x8b"


def pack(
    directory: Path, origin: bytes | None = None, scratch: Path | None = None
) -> Iterator[bytes]:
    """The bytes of the archive in pieces. Equal files give equal bytes.

    All files have a second name when this returns, in a folder of `scratch` (by default the
    system's), so the archive is whole if they are deleted meanwhile. One of them is open at a time:
    a version has up to 1,000.

    Raises:
        FileNotFoundError: they were deleted before.
    """
    pieces = _pieces(directory, origin, scratch)
    next(pieces)
    return pieces


def _pieces(directory: Path, origin: bytes | None, scratch: Path | None) -> Iterator[bytes]:
    """Nothing, once all files have a second name; then those of `pack`."""
    with TemporaryDirectory(prefix="export-", dir=scratch) as folder:
        for path in directory.iterdir():
            _link(path, Path(folder) / path.name)
        yield b""
        for path in sorted(Path(folder).iterdir()):
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                yield _header(path.name, size)
                while chunk := file.read(_CHUNK):
                    yield chunk
                yield _padding(size)
    if origin is not None:
        yield _header(ORIGIN, len(origin)) + origin + _padding(len(origin))
    yield bytes(2 * tarfile.BLOCKSIZE)


def _link(path: Path, name: Path) -> None:
    """Give a file a second name, or copy it where another disk or file system has none."""
    try:
        name.hardlink_to(path)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(path, name)


def unpack(archive: Path, directory: Path, max_bytes: int) -> None:
    """Write the files of an archive into a new directory.

    Raises:
        NotParseable: it is not a tar, or it is damaged.
        Invalid: a member is not a file of an artifact; the message names the first.
        TooLarge: the files have more than `max_bytes`.
    """
    directory.mkdir()
    try:
        with archive.open("rb") as file:
            _unpack(_plain(file), directory, max_bytes)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError) as error:
        raise NotParseable("this is no tar archive, or it is damaged") from error


def _unpack(plain: BinaryIO, directory: Path, max_bytes: int) -> None:
    """Read and check one header at a time, before the bytes after it.

    `tarfile` would read header extensions of any declared length into memory.
    """
    room, names = max_bytes, set[str]()
    while any(block := _read(plain, tarfile.BLOCKSIZE)):
        member = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        _check(member, names)
        names.add(member.name)
        if len(names) > MOST_FILES:
            raise TooLarge(f"the archive has more than {MOST_FILES} files")
        room -= member.size
        if room < 0:
            raise TooLarge(f"the archive's files have more than {max_bytes} bytes")
        with (directory / member.name).open("xb") as target:
            for start in range(0, member.size, _CHUNK):
                target.write(_read(plain, min(_CHUNK, member.size - start)))
        _read(plain, len(_padding(member.size)))
    if any(plain.read(_CHUNK)) or plain.read(1):  # reading to the end checks the CRC of a gzip
        raise tarfile.ReadError("there are bytes after the end")


def _read(plain: BinaryIO, size: int) -> bytes:
    data = plain.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _check(file: tarfile.TarInfo, names: set[str]) -> None:
    """Raise `Invalid` unless the member is a new file of an artifact."""
    name = file.name
    shown = f"/{name[:80]}"
    if file.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or file.size < 0:
        message = "is not a plain file: an archive holds only files (tar --format=ustar, no folder)"
        raise Invalid([(shown, message)])
    member = _MEMBER.fullmatch(name)
    own = member["name"] if member else name
    known = {BACKGROUND, FEATURES} | (set() if member else {MODEL, CARD, MANIFEST, ORIGIN})
    if own not in known and not _VARIANT.fullmatch(own):
        files = f"{MANIFEST}, {MODEL}, {CARD}, {BACKGROUND}, {FEATURES}, {ORIGIN}"
        expected = f"{files} and prune-….safetensors"
        raise Invalid([(shown, f"is not a file of a version: those are {expected}")])
    if name in names:
        raise Invalid([(shown, "is there twice")])
    if name in BOUNDS:
        check_length(name, file.size)


def _plain(file: BinaryIO) -> BinaryIO:
    magic = file.read(2)
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if magic == _GZIP else file  # type: ignore[return-value]


def _header(name: str, size: int) -> bytes:
    """A header without time and owner, so that equal files give equal bytes."""
    member = tarfile.TarInfo(name)
    member.size = size
    return member.tobuf(tarfile.USTAR_FORMAT if size < 8**11 else tarfile.GNU_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
