"""The description of an artifact in a bucket: names and checksums of its files."""

import hashlib
import re
import secrets
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import TypeAdapter, ValidationError

from models.exceptions import CorruptArtifact

_TOKEN = re.compile(r"[0-9a-f]{24}")

CONTENT = "content"  # the name of the file if the artifact is not a directory


@dataclass(frozen=True)
class File:
    """A file of an artifact: its relative path, size in bytes, SHA-256 in hexadecimal."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Publication:
    """One upload of an artifact. Its own `token` keeps it apart from other uploads.

    Empty directories are left out; artifacts have none.
    """

    token: str
    is_directory: bool
    files: tuple[File, ...]

    def path(self, root: Path, file: File) -> Path:
        """The path of a file if the artifact is at `root`."""
        return root / file.name if self.is_directory else root

    def check(self, root: Path) -> None:
        """Compare each file at `root` with its checksum.

        Raises:
            CorruptArtifact: a file differs; the message names the first.
        """
        for file in self.files:
            found = _file(self.path(root, file), file.name)
            if found != file:
                raise CorruptArtifact(
                    f"the artifact store gave a damaged file: {file.name} has {found.size} bytes "
                    f"with SHA-256 {found.sha256}, not {file.size} with {file.sha256}"
                )

    def to_json(self) -> bytes:
        return _ADAPTER.dump_json(self)


_ADAPTER = TypeAdapter(Publication)


def describe(source: Path) -> Publication:
    """The publication of a file or directory, with a new token."""
    paths = {CONTENT: source}
    if source.is_dir():
        found = (path for path in source.rglob("*") if not path.is_dir())
        paths = {path.relative_to(source).as_posix(): path for path in found}
    files = tuple(_file(path, name) for name, path in sorted(paths.items()))
    return Publication(secrets.token_hex(12), source.is_dir(), files)


def read(content: bytes) -> Publication:
    """The inverse of `Publication.to_json`.

    Raises:
        CorruptArtifact: it is not a publication, or a name or token leads outside the artifact.
    """
    try:
        publication = _ADAPTER.validate_json(content)
    except ValidationError as error:
        raise CorruptArtifact(f"not the description of an artifact: {error}") from error
    if not _TOKEN.fullmatch(publication.token):
        raise CorruptArtifact(f"{publication.token!r} is not the token of an upload")
    for file in publication.files:
        name = PurePosixPath(file.name)
        if name.is_absolute() or ".." in name.parts:
            raise CorruptArtifact(f"{file.name!r} is not the name of a file in an artifact")
    return publication


def _file(path: Path, name: str) -> File:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return File(name, path.stat().st_size, sha256)
