"""Types with ranges, for configurations and for what artifacts store; how pydantic reads them."""

from collections.abc import Callable
from typing import Annotated, Any

from annotated_types import Interval, Len
from pydantic import Field

Width = Annotated[int, Interval(ge=1, le=16_384)]
ColumnName = Annotated[str, Len(1, 256)]
Scale = Annotated[float, Interval(ge=1e-6, le=1e3)]
Fraction = Annotated[float, Interval(gt=0.0, lt=1.0)]

# Stored values. Strict: text is not read as a number. 1e300 is well within float64.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-1e300, le=1e300)]
NotNegative = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e300)]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1e300)]
Probability = Annotated[float, Field(strict=True, ge=0, le=1)]
Count = Annotated[int, Field(strict=True, ge=0, le=2**53)]
Text = Annotated[str, Field(strict=True, max_length=2**16)]
Flag = Annotated[bool, Field(strict=True)]

Json = dict[str, Any]

STRICT = {"extra": "forbid"}  # an unknown field in JSON is an error


def kind_or(default: str) -> Callable[[Any], str | None]:
    """Return a discriminator that reads `kind` of a dict or an object; dicts may omit it."""

    def kind(value: Any) -> str | None:
        if isinstance(value, dict):
            return str(value.get("kind", default))
        return getattr(value, "kind", None)

    return kind
