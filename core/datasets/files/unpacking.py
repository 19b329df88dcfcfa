"""Undoes gzip, zstd, bz2 and zip, so that a reader meets the file itself.

The upload keeps its bytes: they are unpacked to a scratch file whenever they are read.
"""

import bz2
import gzip
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

from core.datasets.files.archives import BROKEN as BROKEN_ZIP
from core.datasets.files.archives import ENCRYPTED, data_members, is_document, opened_zip
from core.datasets.files.kinds import PACKINGS, kind_of_bytes
from core.exceptions import NotParseable, TooLarge
from core.process.disks import on_disk

MAX_DEPTH = 2  # a .csv.gz in a zip
PIECE_BYTES = 2**20
LISTED = 10
READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
BROKEN = (*BROKEN_ZIP, pa.ArrowException)


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Unpacked:
    """A file without its packing.

    Args:
        packing: what was undone, the outer first: `gzip`, or `zip, gzip`; None if nothing.
        member: the name of the file in a zip archive.
        beside: the other files in the archive, which are not read.
    """

    path: Path
    packing: str | None = None
    member: str | None = None
    beside: tuple[str, ...] = ()


@contextmanager
def unpacked(path: Path, max_bytes: int, scratch: Path | None = None) -> Iterator[Unpacked]:
    """The file itself, or its unpacked bytes in a temporary file.

    Args:
        max_bytes: that the unpacked file may have.
        scratch: the folder for temporary files.

    Raises:
        NotParseable: a packing is damaged, encrypted, holds several files or is packed too often.
        UnsupportedFormat: the file is of a kind that is never read; see `kinds`.
        TooLarge: the unpacked file has more than `max_bytes`.
    """
    done: list[str] = []
    file = Unpacked(path)
    with ExitStack() as stack:
        while (packing := kind_of_bytes(file.path)) in PACKINGS:
            if len(done) == MAX_DEPTH:
                raise NotParseable(
                    f"the file is packed more than twice ({', '.join(done)}, {packing}): "
                    "send it packed once, or as it is"
                )
            done.append(str(packing))
            folder = stack.enter_context(tempfile.TemporaryDirectory(dir=scratch))
            target = Path(folder) / "file"
            member, beside = _unpack(str(packing), file.path, target, max_bytes)
            member, beside = member or file.member, beside or file.beside
            file = Unpacked(target, ", ".join(done), member, beside)
        yield file


def _unpack(
    packing: str, path: Path, target: Path, max_bytes: int
) -> tuple[str | None, tuple[str, ...]]:
    """Write the unpacked bytes. Returns the member's name and those of the others."""
    with on_disk("the unpacked file"), target.open("wb") as out:
        try:
            if packing == "zip":
                return _unpack_zip(path, out, max_bytes)
            with OPENERS[packing](path) as stream:
                _copy(stream, out, max_bytes)
        except BROKEN as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise NotParseable(f"the {packing} file is damaged, or ends too early") from error
    return None, ()


def _unpack_zip(path: Path, out: BinaryIO, max_bytes: int) -> tuple[str, tuple[str, ...]]:
    with opened_zip(path) as archive:
        member, beside = _only_member(archive)
        if member.flag_bits & ENCRYPTED:
            raise NotParseable(
                f"{member.filename!r} in the zip archive is encrypted: send it without a password"
            )
        if member.compress_type not in READABLE:
            raise NotParseable(
                f"{member.filename!r} is compressed by method {member.compress_type} of zip, which "
                "is not read: compress it by the usual one, deflate, or with gzip or zstd"
            )
        with archive.open(member) as stream:
            _copy(stream, out, max_bytes)
    return member.filename, beside


def _only_member(archive: zipfile.ZipFile) -> tuple[zipfile.ZipInfo, tuple[str, ...]]:
    """The one data file, and the names of documents beside it."""
    members = data_members(archive)
    data = [m for m in members if not is_document(m.filename)] or members
    if not data:
        raise NotParseable("the zip archive holds no file: put one file with the data into it")
    if len(data) > 1:
        listed = ", ".join(repr(m.filename[:100]) for m in data[:LISTED])
        more = " …" if len(data) > LISTED else ""
        raise NotParseable(
            f"the zip archive holds {len(data)} files ({listed}{more}) and a data set is made of "
            "one: upload each as a data set of its own, or put their rows into one file"
        )
    beside = tuple(m.filename for m in members if m is not data[0])
    return data[0], beside


def _copy(stream: _Stream, out: BinaryIO, max_bytes: int) -> None:
    room = max_bytes
    while piece := stream.read(min(PIECE_BYTES, room + 1)):
        room -= len(piece)
        if room < 0:
            raise TooLarge(
                f"the file unpacks to more than {max_bytes} bytes, the limit "
                "CREDENCE_MAX_DATASET_BYTES"
            )
        out.write(piece)


@contextmanager
def _zstd(path: Path) -> Iterator[_Stream]:
    with pa.OSFile(str(path), "rb") as file, pa.CompressedInputStream(file, "zstd") as stream:
        yield stream


OPENERS: Mapping[str, Callable[[Path], AbstractContextManager[_Stream]]] = {
    "gzip": gzip.open,
    "zstd": _zstd,
    "bz2": bz2.open,
}
