"""Ranges and names that several configurations share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Interval, Len

Task = Literal["regression", "classification", "forecasting", "language_model"]
FeatureType = Literal["number", "category", "boolean", "datetime", "tensor"]
LikelihoodName = Literal["heteroscedastic", "homoscedastic", "categorical", "bernoulli"]

Width = Annotated[int, Interval(ge=1, le=16_384)]
ColumnName = Annotated[str, Len(1, 256)]
Scale = Annotated[float, Interval(ge=1e-6, le=1e3)]
Fraction = Annotated[float, Interval(gt=0.0, lt=1.0)]

Pruning = Annotated[tuple[Fraction, ...], Len(0, 16)]
Json = dict[str, Any]

STRICT = {"extra": "forbid"}  # pydantic's reading of a dataclass: an unknown field is an error


def kind_or(default: str) -> Callable[[Any], str | None]:
    """Tells which kind of a union is meant, in JSON or as an object; without one the default."""

    def kind(value: Any) -> str | None:
        if isinstance(value, dict):
            return str(value.get("kind", default))
        return getattr(value, "kind", None)

    return kind


@dataclass(frozen=True, kw_only=True)
class FeatureConfig:
    """One input column and how it is read."""

    __pydantic_config__ = STRICT
    name: ColumnName
    type: FeatureType
