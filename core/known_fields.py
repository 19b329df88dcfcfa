"""The field that was probably meant by an unknown one, from the JSON schema of the request."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from models.messages import nearest_name

DISCRIMINATOR = "kind"
_UNIONS = ("anyOf", "oneOf", "allOf")
Schema = dict[str, Any]


def meant_field(model: type[BaseModel], location: Sequence[int | str], document: Any) -> str | None:
    """The name of a field that is like the last part of `location`; None if none is like it.

    Args:
        location: the place of an unknown field in `document`, without names of union branches.
        document: what was read as a `model`.
    """
    *parents, unknown = location
    schema = _schema(model)
    definitions = schema.get("$defs", {})
    objects = [schema]
    for part in parents:
        document = document[part]
        inner = [found for one in objects for found in _inside(one, part)]
        branches = [branch for one in inner for branch in _branches(one, definitions)]
        objects = [one for one in branches if _has_kind(one, document)]
    given = document if isinstance(document, dict) else {}
    known = {name for one in objects for name in one.get("properties", {}) if name not in given}
    return nearest_name(str(unknown), sorted(known))


@lru_cache(maxsize=64)
def _schema(model: type[BaseModel]) -> Schema:
    return model.model_json_schema()


def _inside(schema: Schema, part: int | str) -> list[Schema]:
    """The schemas of an item of a list, or of a member of an object."""
    if isinstance(part, int):
        found = schema.get("items"), *schema.get("prefixItems", ())
    else:
        found = (schema.get("properties", {}).get(part, schema.get("additionalProperties")),)
    return [one for one in found if isinstance(one, dict)]


def _branches(schema: Schema, definitions: Schema) -> Iterator[Schema]:
    """The schema, and all that it refers to or is a union of."""
    yield schema
    if "$ref" in schema:
        yield from _branches(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    for union in _UNIONS:
        for branch in schema.get(union, ()):
            yield from _branches(branch, definitions)


def _has_kind(schema: Schema, value: Any) -> bool:
    """Whether a branch of a union has the `kind` of a value; a kind with a default may be left out.

    Lists and objects without kinds have every one.
    """
    kind = schema.get("properties", {}).get(DISCRIMINATOR)
    if kind is None or not isinstance(value, dict):
        return True
    given = value.get(DISCRIMINATOR, kind.get("default"))
    return given == kind.get("const") or given in kind.get("enum", ())
