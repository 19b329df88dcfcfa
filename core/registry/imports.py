"""Imports: examine what an archive holds. `Registry.add` publishes it afterwards."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
from annotated_types import Interval, Len
from pydantic import Field, TypeAdapter, ValidationError

from core.database.schema import Json
from core.exceptions import Invalid
from core.names import name_problem
from core.registry.documents import ORIGIN, check_description, check_documents
from core.registry.registry import Version
from models.artifact.files import CARD, MODEL, examine_artifact, read_json
from models.exceptions import CorruptArtifact

_MOST_EXACT = 2**53  # readers of JSON may round larger integers
_MAX_DEPTH = 32

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{0,64}$")]


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a version was exported. It is not verified."""

    model: Identifier
    version: Annotated[int, Interval(ge=1, le=2**31 - 1)]
    dataset: Identifier
    job: Identifier
    created_at: Annotated[str, Len(1, 64)]


@dataclass(frozen=True)
class Imported:
    """An unpacked archive.

    Args:
        directory: the artifact's folder.
        description: the content of `model.json`.
        card: the content of `card.json`.
    """

    directory: Path
    description: Json
    card: Json
    num_bytes: int


def describe_origin(version: Version) -> bytes:
    """The `origin.json` of a version's archive."""
    return orjson.dumps(
        Origin(
            model=version.model,
            version=version.version,
            dataset=version.dataset,
            job=version.job,
            created_at=version.created_at.isoformat(),
        )
    )


def examine(directory: Path) -> Imported:
    """Read the files of an archive that was unpacked.

    Call it in a child with limits (`app.examination`).

    Raises:
        Invalid: a file, or a field of `model.json`, is wrong; the message names it.
        MemoryError: a prediction takes more memory than there is.
    """
    check_documents(directory)
    try:
        origin = _read_origin(directory / ORIGIN)
        model = examine_artifact(directory)
    except CorruptArtifact as error:
        message = error.message.replace(f"{directory}/", "").replace(str(directory), "the archive")
        raise Invalid([(_place(error.path), message)]) from error
    size = sum(path.stat().st_size for path in directory.iterdir())
    imported = {"origin": origin and asdict(origin), "bytes": size}
    description = model.description | {"imported": imported}
    check_description(description)
    for name, part in ((MODEL, description), (CARD, model.card)):
        _check_plain(part, f"/{name}")
    _check_names(description)
    return Imported(directory, description, model.card, size)


def _place(path: str) -> str:
    """The path of an error, with the file's name first; without a name, it is `model.json`."""
    first = path.split("/")[1] if path else MODEL
    is_file = first.endswith((".json", ".safetensors"))
    return (path or f"/{first}") if is_file else f"/{MODEL}{path}"


def _read_origin(path: Path) -> Origin | None:
    """Read `origin.json`, and delete it, because it is not part of the artifact."""
    if not path.is_file():
        return None
    data = read_json(path)
    path.unlink()
    try:
        origin = TypeAdapter(Origin).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(["", ORIGIN, *map(str, first["loc"])])
        raise CorruptArtifact(first["msg"], place) from error
    return origin


def _check_names(description: Json) -> None:
    """Raise `Invalid` for a column name that is not allowed in a data set."""
    names = [description["target"], *(f["name"] for f in description["features"])]
    for name in names:
        if problem := name_problem(name):
            raise Invalid([("/model.json/config/features", f"the name {name[:80]!r} {problem}")])


def _check_plain(value: Any, place: str, depth: int = 0) -> None:
    """Raise `Invalid` for values that databases or other readers of JSON do not support."""
    match value:
        case str():
            if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
                raise Invalid([(place, "holds a NUL or half a surrogate pair: remove it")])
        case float() if not math.isfinite(value):
            raise Invalid([(place, "is not finite")])
        case int() if abs(value) > _MOST_EXACT:
            raise Invalid([(place, f"is beyond ±{_MOST_EXACT}")])
        case Mapping():
            for key, item in value.items():
                _check_plain(str(key), place, depth)
                _check_nested(item, f"{place}/{key}"[:200], depth)
        case list() | tuple():
            for i, item in enumerate(value):
                _check_nested(item, f"{place}/{i}"[:200], depth)


def _check_nested(value: Any, place: str, depth: int) -> None:
    if depth >= _MAX_DEPTH:
        raise Invalid([(place, f"is nested more than {_MAX_DEPTH} deep")])
    _check_plain(value, place, depth + 1)
