"""Ranges that several configurations share, and how pydantic reads the dataclasses."""

from collections.abc import Callable
from typing import Annotated, Any

from annotated_types import Interval, Len

Width = Annotated[int, Interval(ge=1, le=16_384)]
ColumnName = Annotated[str, Len(1, 256)]
Scale = Annotated[float, Interval(ge=1e-6, le=1e3)]
Fraction = Annotated[float, Interval(gt=0.0, lt=1.0)]

Json = dict[str, Any]

STRICT = {"extra": "forbid"}  # an unknown field in JSON is an error


def kind_or(default: str) -> Callable[[Any], str | None]:
    """Return a discriminator that reads `kind` of a dict or an object; dicts may omit it."""

    def kind(value: Any) -> str | None:
        if isinstance(value, dict):
            return str(value.get("kind", default))
        return getattr(value, "kind", None)

    return kind
