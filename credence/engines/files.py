"""Read rows and settings, and write a model: by a path, or by `s3://bucket/key`."""

import json
import shutil
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from core.datasets.columns import canonical
from core.exceptions import UnsupportedFormat
from credence.bulk.places import filesystem, folder_at, is_remote

CHUNK = 2**20
Format = Literal["parquet", "arrow", "csv"]
FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".csv": "csv",
}


def read_table(place: str) -> pa.Table:
    """The rows of a file, or of the files in a folder, with canonical columns.

    Raises:
        FileNotFoundError: there is no file.
        UnsupportedFormat: the files are neither Parquet nor Arrow nor CSV.
    """
    system, path = located(place)
    files = _files(system, path, place)
    format_ = FORMATS.get(Path(files[0]).suffix.lower())
    if format_ is None:
        raise UnsupportedFormat(f"{files[0]} is neither .parquet, .arrow nor .csv")
    return canonical(ds.dataset(files, format=format_, filesystem=system).to_table())


def read_settings(place: str) -> dict[str, Any]:
    """The object in a JSON file. Raises `ValueError` if it has none."""
    system, path = located(place)
    with system.open_input_stream(path) as file:
        try:
            found = json.loads(file.read())
        except ValueError as error:
            raise ValueError(f"{place} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(  # noqa: TRY004 - a wrong file, not a wrong call
            f"{place} holds no object: it should be like {{'target': 'price'}}"
        )
    return found


def check_writable(place: str) -> None:
    """Raise `FileNotFoundError` if the folder of a new file does not exist on this machine."""
    folder = Path(place).absolute().parent
    if not is_remote(place) and not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder} to write {Path(place).name} to")


def write_whole(place: str, source: Path) -> None:
    """Write a copy of a file. Nobody sees half of it, and an older one is replaced."""
    folder, _, name = (place if is_remote(place) else str(Path(place).absolute())).rpartition("/")
    with source.open("rb") as file, folder_at(folder).writing(name) as target:
        shutil.copyfileobj(file, target, CHUNK)


def located(place: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or of `s3://…`, and the path in it."""
    return filesystem(place if is_remote(place) else str(Path(place).absolute()))


def _files(system: fs.FileSystem, path: str, place: str) -> list[str]:
    info = system.get_file_info(path)
    if info.type == fs.FileType.File:
        return [path]
    selector = fs.FileSelector(path, allow_not_found=True, recursive=True)
    found = [one.path for one in system.get_file_info(selector) if one.type == fs.FileType.File]
    visible = [one for one in found if not Path(one).name.startswith((".", "_"))]
    if not visible:
        raise FileNotFoundError(f"there is no file {place!r}")
    return sorted(visible)
