"""Where a model's files are, and the sum by which a process knows that they are the same."""

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.registry import archives
from core.registry.documents import ORIGIN
from credence.scoring.versions import VersionPlace
from models.artifact.files import MANIFEST, read_model
from models.exceptions import CorruptArtifact
from models.model import TrainedModel

if TYPE_CHECKING:
    from credence.scoring.model import LoadedModel

MAX_BYTES = 2**36  # of an archive that the caller names: larger than any model that fits in memory


@dataclass(frozen=True)
class Source:
    """The files of a version.

    Attributes:
        path: of the archive or the folder.
        place: the version in a service, from which another machine gets the archive; None of files.
        digest: the SHA-256 sum of the manifest, which has the sums of all files.
    """

    path: Path
    place: VersionPlace | None
    digest: str

    def save(self, target: Path) -> None:
        """Write the archive to a new file."""
        found = self.found()
        with target.open("xb") as file:
            if found.is_dir():
                file.writelines(archives.pack(found))
            else:
                with found.open("rb") as archive:
                    shutil.copyfileobj(archive, file)

    def found(self) -> Path:
        """The files on this machine, downloaded if they are not there.

        Raises:
            FileNotFoundError: they are not there, and no service has them.
        """
        if self.path.exists():
            return self.path
        if self.place is None:
            message = "put the archive where all workers see it, or load models:/name/version"
            raise FileNotFoundError(f"there is no {self.path} on this machine: {message}")
        return self.place.archive()

    @property
    def reopened(self) -> Any:
        """A function of the threads that gives the model in any process, once per process."""
        return partial(_reopen, self)


@dataclass(frozen=True)
class Files:
    """What was read from the files of a version."""

    model: TrainedModel
    digest: str
    name: str
    version: int


def read_files(path: Path) -> Files:
    """Read an archive or an artifact's folder, and check every file against its sum.

    Raises:
        FileNotFoundError: there is neither.
        NotParseable, Invalid: the file is no archive of a model.
        CorruptArtifact: a file differs from its sum, or a field is out of its range.
    """
    if path.is_dir():
        return _read_folder(path, path.name)
    with tempfile.TemporaryDirectory(prefix="credence-model-") as folder:
        directory = Path(folder) / "model"
        archives.unpack(path, directory, MAX_BYTES)
        return _read_folder(directory, path.name.split(".")[0])


def open_source(source: Source, files: Files, threads: int | None) -> "LoadedModel":
    """The model of files that were read."""
    from credence.scoring.model import LoadedModel  # noqa: PLC0415 - which knows its source

    return LoadedModel(files.model, files.name, files.version, source, threads)


def _read_folder(folder: Path, name: str) -> Files:
    model = read_model(folder)
    digest = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
    origin = _origin(folder / ORIGIN)
    return Files(model, digest, str(origin.get("model", name)), int(origin.get("version", 0)))


def _origin(path: Path) -> dict[str, Any]:
    """Where the version was exported; empty if the files do not say it."""
    try:
        found = json.loads(path.read_bytes()) if path.is_file() else {}
        return {"model": str(found["model"]), "version": int(found["version"])} if found else {}
    except (ValueError, TypeError, KeyError, UnicodeError) as error:
        raise CorruptArtifact(f"cannot be read: {error!r}"[:500], f"/{path.name}") from error


def _reopen(source: Source, threads: int) -> "LoadedModel":
    return open_source(source, _files(source), threads)


@cache
def _files(source: Source) -> Files:
    """The files of a source, read once per process.

    Raises:
        CorruptArtifact: they are not those of the model that was sent here.
    """
    path = source.found()
    files = read_files(path)
    if files.digest != source.digest:
        raise CorruptArtifact(f"{path} holds other files than those of the model that was loaded")
    return files
