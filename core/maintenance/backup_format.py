"""What a backup is: a tar file of the database, of artifacts, and of their description.

artifacts/KEY/…   files of artifacts; some of them may belong to what was deleted meanwhile
credence.db       the database, of one moment
manifest.json     which members belong to the backup, with their sizes and SHA-256: the last one
"""

from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from core.exceptions import CredenceError
from core.storage.protocol import check_key

DATABASE, MANIFEST, ARTIFACTS = "credence.db", "manifest.json", "artifacts"


class BackupFailed(CredenceError):
    """No backup was written, or none was restored; nothing is left half done."""


class File(BaseModel):
    """A member of the archive."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Manifest(BaseModel):
    """What is in a backup, and who wrote it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal[1] = 1
    release: str
    created_at: datetime
    files: list[File]


def artifact_name(path: Path, root: Path) -> str:
    """The name of the member for a file of the artifact store."""
    return f"{ARTIFACTS}/{path.relative_to(root).as_posix()}"


def target(file: File, folder: Path) -> Path:
    """Where a member belongs under `folder`; `BackupFailed` if that is nowhere."""
    top, _, key = file.name.partition("/")
    if file.name == DATABASE:
        return folder / DATABASE
    try:
        if top == ARTIFACTS:
            return folder / ARTIFACTS / PurePosixPath(check_key(key))
    except ValueError:
        pass
    raise BackupFailed(f"{file.name!r} is no name of a file in a backup: it was not made here")
