"""`credence.load`: a trained model in this process, without the service."""

from pathlib import Path

from credence.scoring.model import LoadedModel
from credence.scoring.source import Source, open_source, read_files
from credence.scoring.versions import FORMS, place_of


def load(
    source: str | Path,
    *,
    url: str | None = None,
    key: str | None = None,
    threads: int | None = None,
) -> LoadedModel:
    """The model of an archive, of a folder, or of a service, whose archive is downloaded once.

    Args:
        source: the path of an archive (`credence models export`) or of an artifact's folder;
            `models:/NAME` for the newest version, `models:/NAME/champion` or `models:/NAME/3`; or
            the same as a URL, `http://HOST/models/NAME/versions/3`.
        url: of the service that has `models:/…`; by default `CREDENCE_URL`.
        key: by default `CREDENCE_KEY`. Not sent to other processes.
        threads: for a computation; by default those of the process, and one on workers.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the text has no form that is known.
        NotParseable, Invalid: the file is no archive of a model.
        CorruptArtifact: a file differs from its SHA-256 sum, or a field is out of its range.
        CredenceAPIError, ServiceUnreachable: the service has no such version, or does not answer.
    """
    place = None if isinstance(source, Path) else place_of(source, url)
    if place is None:
        path = Path(source).absolute()
        if not path.exists():
            raise FileNotFoundError(f"there is no {source}: give {FORMS}")
    else:
        place, path = place.resolved(key)
    files = read_files(path)
    return open_source(Source(path, place, files.digest), files, threads)
