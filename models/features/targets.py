"""Encodes the target: numbers are standardised, classes become indices."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Shaped
from pydantic import Field
from torch import Tensor

from models.config.ranges import Flag, Number, Positive, Text
from models.exceptions import InvalidData, InvalidInput

MAX_CLASSES = 1_000

Whole = Annotated[int, Field(strict=True, ge=-(10**300), le=10**300)]


@dataclass(frozen=True)
class NumberTarget:
    """z = (y − mean) / std."""

    mean: Number
    std: Positive
    kind: Literal["number"] = "number"

    @classmethod
    def fit(cls, values: np.ndarray) -> "NumberTarget":
        """Learn mean and standard deviation from training rows.

        Raises:
            InvalidData: if the target does not vary.
        """
        mean, std = float(values.mean()), float(values.std())
        if std <= 1e-12 * max(1.0, abs(mean)):
            raise InvalidData(f"the target is {mean:g} in every training row", "/target")
        return cls(mean, std)

    def encode(self, values: np.ndarray) -> Shaped[Tensor, "rows"]:
        return torch.from_numpy(((values - self.mean) / self.std).astype(np.float32))


@dataclass(frozen=True)
class ClassTarget:
    """The index of a class in `classes`, which keep the type that they have in the data."""

    classes: Annotated[tuple[Flag | Whole | Number | Text, ...], Len(2, MAX_CLASSES)]
    kind: Literal["class"] = "class"

    @classmethod
    def fit(cls, values: np.ndarray, *, boolean: bool) -> "ClassTarget":
        """Collect the classes of the training rows, sorted.

        Raises:
            InvalidData: if there are fewer than two classes or more than `MAX_CLASSES`.
        """
        found = sorted(set(values.tolist()))
        if not 2 <= len(found) <= MAX_CLASSES:
            raise InvalidData(
                f"the target has {len(found)} classes; classification needs 2 to {MAX_CLASSES}",
                "/target",
            )
        return cls(tuple(bool(v) for v in found) if boolean else tuple(map(_plain, found)))

    def encode(self, values: np.ndarray) -> Shaped[Tensor, "rows"]:
        """Return class indices.

        Raises:
            InvalidInput: for a class that no training row had.
        """
        index = {value: i for i, value in enumerate(self.classes)}
        unknown = sorted({str(v) for v in values.tolist() if v not in index})
        if unknown:
            raise InvalidInput(
                f"unknown classes {unknown[:5]}; known are {list(self.classes)[:20]}"
            )
        return torch.tensor([index[v] for v in values.tolist()], dtype=torch.int64)


Target = Annotated[NumberTarget | ClassTarget, Field(discriminator="kind")]


def _plain(value: str | float) -> str | float:
    """Return a whole number as an int, so that classes read 1 rather than 1.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def present(values: np.ndarray) -> np.ndarray:
    """Return a mask that is True for values that are not missing."""
    if values.dtype == object:
        return np.array([value is not None for value in values.tolist()], dtype=bool)
    return ~np.isnan(values)
