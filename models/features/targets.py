"""Encodes the target: numbers are standardised on a scale, classes become indices."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Bool, Float, Float64, Shaped
from pydantic import Field
from torch import Tensor

from models.config import Task
from models.config.ranges import Flag, Number, Positive, Text
from models.exceptions import InvalidData, InvalidInput
from models.features import weighted
from models.features.scales import IdentityScale, Scale
from models.features.weighted import Weights

MAX_CLASSES = 1_000
MAX_ATOMS = 4
_ROUNDING = 1e-9

Whole = Annotated[int, Field(strict=True, ge=-(10**300), le=10**300)]


@dataclass(frozen=True)
class NumberTarget:
    """z = (g(y) − mean) / std, with a monotone scale g.

    A target with a `z_range` has a shape: a support, atoms or whole numbers, which a
    `ShapedLikelihood` reads. It is encoded as y in float64, because atoms and whole numbers must be
    recognised. A target without one is encoded as z.

    Args:
        mean, std: of g(y) over the training rows that are not atoms.
        lower, upper: the support, bounds included; None if there is no bound.
        integer: whether only whole numbers have probability.
        atoms: values that have a probability of their own, in increasing order.
        z_range: smallest and largest z of the training rows that are not atoms.
        drops_ends: whether intervals of whole numbers leave out an end without which they hold
            their level. Versions before release 0.9 never do.
    """

    mean: Number
    std: Positive
    kind: Literal["number"] = "number"
    scale: Scale = field(default_factory=IdentityScale)
    lower: Number | None = None
    upper: Number | None = None
    integer: Flag = False
    atoms: Annotated[tuple[Number, ...], Len(0, MAX_ATOMS)] = ()
    z_range: tuple[Number, Number] | None = None
    drops_ends: Flag = False

    @classmethod
    def fit(cls, values: np.ndarray, weights: Weights | None = None) -> "NumberTarget":
        """Learn mean and standard deviation from training rows, without a shape.

        Raises:
            InvalidData: if the target does not vary.
        """
        mean, std = weighted.mean(values, weights), weighted.deviation(values, weights)
        if std <= 1e-12 * abs(mean):  # rounding, as of a constant
            raise InvalidData(f"the target is {mean:g} in every training row", "/target")
        return cls(mean, std)

    @classmethod
    def shaped(
        cls,
        values: np.ndarray,
        scale: Scale,
        *,
        lower: float | None = None,
        upper: float | None = None,
        integer: bool = False,
        atoms: tuple[float, ...] = (),
        weights: Weights | None = None,
    ) -> "NumberTarget":
        """Learn mean, standard deviation and range on the scale; atoms do not count.

        Raises:
            InvalidData: if the values that are not atoms do not vary.
        """
        in_density = ~np.isin(values, atoms)
        rest, weights = values[in_density], weighted.part(weights, in_density)
        g = scale(torch.from_numpy(rest.astype(np.float64)))
        fitted = cls.fit(g.numpy(), weights) if len(g) else cls.fit(values[:1])
        z = (g - fitted.mean) / fitted.std
        return cls(
            fitted.mean,
            fitted.std,
            scale=scale,
            lower=lower,
            upper=upper,
            integer=integer,
            atoms=atoms,
            z_range=(float(z.min()), float(z.max())),
            drops_ends=integer,
        )

    @property
    def is_shaped(self) -> bool:
        return self.z_range is not None

    def encode(self, values: np.ndarray) -> Shaped[Tensor, "rows"]:
        """z in float32, or y in float64 if the target has a shape."""
        if self.is_shaped:
            return torch.from_numpy(values.astype(np.float64))
        return torch.from_numpy(((values - self.mean) / self.std).astype(np.float32))

    def decode(self, targets: Float[Tensor, "rows"]) -> Float64[Tensor, "rows"]:
        """Encoded targets as y in float64."""
        return targets.double() if self.is_shaped else targets.double() * self.std + self.mean

    def to_z(self, y: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return (self.scale(y) - self.mean) / self.std

    def from_z(self, z: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """y of any z, within the support."""
        return self.inside(self.scale.inverse(z * self.std + self.mean))

    def observed(self, z: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """`from_z`, rounded where only whole numbers occur; a half is a number's upper end."""
        y = self.scale.inverse(z * self.std + self.mean)
        if self.integer:
            y = torch.ceil(y - 0.5 - _ROUNDING) + 0.0  # which makes −0 a plain 0
        return self.inside(y)

    def inside(self, y: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """y, or the bound of the support that it passes."""
        return y.clamp(self.lower, self.upper) if self.is_bounded else y

    @property
    def is_bounded(self) -> bool:
        return self.lower is not None or self.upper is not None

    @cached_property
    def z_bounds(self) -> tuple[float | None, float | None]:
        """The bounds of the support as z."""
        return self._z_of(self.lower), self._z_of(self.upper)

    @cached_property
    def z_extremes(self) -> tuple[float, float]:
        """z of the training range widened on each side by its width in y, within the support.

        Means and variances count values beyond as these: a heavy tail on a scale such as the
        logarithm would otherwise make them huge or infinite.
        """
        assert self.z_range is not None
        low, high = self.from_z(torch.tensor(self.z_range, dtype=torch.float64)).tolist()
        ends = torch.tensor([2 * low - high, 2 * high - low], dtype=torch.float64)
        wide_low, wide_high = self.to_z(self.inside(ends)).tolist()
        return min(wide_low, self.z_range[0]), max(wide_high, self.z_range[1])

    @cached_property
    def whole_numbers(self) -> tuple[int, int]:
        """The smallest and the largest whole number between the extremes."""
        low, high = self.from_z(torch.tensor(self.z_extremes, dtype=torch.float64)).round().tolist()
        return int(low), int(high)

    @cached_property
    def whole_edges(self) -> tuple[float, ...]:
        """z halfway between successive `whole_numbers`."""
        halves = torch.arange(*self.whole_numbers, dtype=torch.float64) + 0.5
        return tuple(self.to_z(halves).tolist())

    def log_derivative(self, y: Float[Tensor, "rows"]) -> Float[Tensor, "rows"]:
        """log |dz/dy|, which turns log densities of z into those of y; 0 for probabilities."""
        density = self.scale.log_derivative(y) - math.log(self.std)
        return torch.where(self.has_probability(y), torch.zeros_like(density), density)

    def has_probability(self, y: Float[Tensor, "rows"]) -> Bool[Tensor, "rows"]:
        """Whether y is an atom or a whole number, which have probabilities and no density."""
        if self.integer:
            return torch.ones_like(y, dtype=torch.bool)
        is_atom = torch.zeros_like(y, dtype=torch.bool)
        for atom in self.atoms:
            is_atom = is_atom | (y == atom)
        return is_atom

    def is_possible(self, y: Float[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
        """Whether y is in the support, and whole where only whole numbers are."""
        possible = y.round() == y if self.integer else torch.ones_like(y, dtype=torch.bool)
        if self.lower is not None:
            possible = possible & (y >= self.lower)
        return possible if self.upper is None else possible & (y <= self.upper)

    def _z_of(self, y: float | None) -> float | None:
        return None if y is None else float(self.to_z(torch.tensor(y, dtype=torch.float64)))


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
        classes = sorted(set(values.tolist()))
        if not 2 <= len(classes) <= MAX_CLASSES:
            raise InvalidData(
                f"the target has {len(classes)} classes; classification needs 2 to {MAX_CLASSES}",
                "/target",
            )
        if boolean:
            return cls(tuple(bool(value) for value in classes))
        # Whole numbers as ints, so that classes read 1 rather than 1.0.
        plain = (int(v) if isinstance(v, float) and v.is_integer() else v for v in classes)
        return cls(tuple(plain))

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


def target_type(task: Task | None, stored: str) -> str:
    """The type that a target is read as, from its column's type in the data set."""
    if task == "regression":
        return "number"
    return "boolean" if stored == "boolean" else "category"


def present(values: np.ndarray) -> np.ndarray:
    """Return a mask that is True for values that are not missing."""
    if values.dtype == object:
        return np.array([value is not None for value in values.tolist()], dtype=bool)
    return ~np.isnan(values)
