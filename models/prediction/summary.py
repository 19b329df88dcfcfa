"""Values of declared outputs with their Monte-Carlo errors, from the engine to the answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

import numpy as np

from models.prediction.declared_outputs import Axis

Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Of some rows, by the names of `models.prediction.declared_outputs`.

    Args:
        values: arrays or lists whose first axis are the rows.
        errors: standard errors of finite sampling, in the shape of the values; of the mean, and of
            all outputs if the options need them.
        parts: of outputs whose rows are others (`outputs.Part`), by name.
        coordinates: of the axes.
        constants: values that are the same for all rows.
    """

    values: Values
    errors: Values = field(default_factory=dict)
    parts: Mapping[str, "Summary"] = field(default_factory=dict)
    coordinates: Mapping[Axis, Sequence[Any]] = field(default_factory=dict)
    constants: Values = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str) -> Any:
        """The values of an output, or its constant; None if it was not asked for."""
        value = self.values.get(name)
        return self.constants.get(name) if value is None else value

    def with_values(self, **values: Any) -> Self:
        """A copy with other or more values."""
        return replace(self, values={**self.values, **values})

    def with_constants(self, **constants: Any) -> Self:
        """A copy with more constants."""
        return replace(self, constants={**self.constants, **constants})

    def with_coordinates(self, axis: Axis, coordinates: Sequence[Any]) -> Self:
        """A copy with the coordinates of one more axis."""
        return replace(self, coordinates={**self.coordinates, axis: coordinates})

    def without(self, *names: str) -> Self:
        """A copy without some values and their errors."""
        if not names:
            return self
        values = {name: v for name, v in self.values.items() if name not in names}
        errors = {name: v for name, v in self.errors.items() if name not in names}
        return replace(self, values=values, errors=errors)

    def with_mc_error(self, *, keep: bool) -> Self:
        """A copy with the error of the mean as the output `mc_error`.

        Args:
            keep: whether the errors of all outputs stay, if they were estimated.
        """
        of_mean = {"mc_error": self.errors["mean"]} if "mean" in self.errors else {}
        parts = {name: part.with_mc_error(keep=keep) for name, part in self.parts.items()}
        errors = self.errors if keep and len(self.errors) > 1 else {}
        return replace(self, values={**self.values, **of_mean}, errors=errors, parts=parts)

    def each(self, change: Callable[[Any], Any]) -> Self:
        """A copy with each array of values and errors changed."""
        return replace(
            self,
            values={name: change(values) for name, values in self.values.items()},
            errors={name: change(values) for name, values in self.errors.items()},
            parts={name: part.each(change) for name, part in self.parts.items()},
        )

    def of_rows(self, rows: slice) -> Self:
        """The summary of some rows."""
        return self.each(lambda values: values[rows])

    def with_errors(
        self, factor: float | None, by_output: Mapping[str, float] | None = None
    ) -> Self:
        """A copy with all errors multiplied by the factor, or by their output's own one.

        None takes them out: samples from no known distribution have none.
        """
        by_output, given = by_output or {}, {} if factor is None else self.errors
        errors = {name: by_output.get(name, factor) * error for name, error in given.items()}
        parts = {name: part.with_errors(factor) for name, part in self.parts.items()}
        return replace(self, errors=errors, parts=parts)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Join summaries of consecutive rows with the same options."""
        first = parts[0]
        if len(parts) == 1:
            return first
        shared = [k for k in first.errors if all(k in part.errors for part in parts)]
        return replace(
            first,
            values={k: _joined([part.values[k] for part in parts]) for k in first.values},
            errors={k: _joined([part.errors[k] for part in parts]) for k in shared},
            parts={k: Summary.joined([part.parts[k] for part in parts]) for k in first.parts},
        )


def _joined(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return list(chain.from_iterable(parts))
