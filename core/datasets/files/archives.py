"""Zip archives whose directory is bounded before it is parsed."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from core.datasets.columns.place import MAX_COLUMNS
from core.exceptions import NotParseable

BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    IndexError,
    struct.error,
)
"""What `zipfile` raises for archives that are damaged."""

MEMBER = b"PK\x01\x02"  # begins every entry of an archive's directory
ENCRYPTED = 1  # in a member's flags
DOCUMENTS = (".md", ".rst", ".pdf", ".html", ".htm", ".docx", ".url")
DOCUMENT_NAMES = ("readme", "license", "licence", "copying", "changelog", "citation")
SYSTEM_FILES = ("thumbs.db", "desktop.ini")


class _CountedFile(io.FileIO):
    """A file that raises `NotParseable` if an archive has too many members.

    `zipfile` reads the archive's directory in one call, before it parses it.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size) or b""
        if (count := data.count(MEMBER)) > MAX_COLUMNS:
            raise NotParseable(f"the archive holds {count} members: give at most {MAX_COLUMNS}")
        return data


@contextmanager
def opened_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive. Raises one of `BROKEN` where it is damaged."""
    with _CountedFile(path) as file, zipfile.ZipFile(file) as archive:
        yield archive


def data_members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The members that are files and not what systems add (__MACOSX, .DS_Store)."""
    members = archive.infolist()
    return [m for m in members if not m.filename.endswith("/") and not _is_of_system(m.filename)]


def is_document(name: str) -> bool:
    """Whether a file only describes data, such as README.md."""
    path = PurePosixPath(name.lower())
    return path.suffix in DOCUMENTS or path.stem in DOCUMENT_NAMES


def _is_of_system(name: str) -> bool:
    path = PurePosixPath(name)
    hidden = path.name.startswith(".") or path.name.lower() in SYSTEM_FILES
    return hidden or "__MACOSX" in path.parts
