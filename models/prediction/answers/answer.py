"""What a request may ask of a prediction beside means, variances and intervals."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from models.evaluation.calibration import Calibration
from models.prediction.options import BatchOptions, ResolvedOptions
from models.prediction.predictive import Mixture

Arrays = Mapping[str, np.ndarray]
TensorsByName = Mapping[str, Tensor]
ErrorOf = Callable[[Tensor], Tensor]  # of what each sample adds, samples × rows: its standard error
Classes = tuple[str | float | bool, ...] | None
A = TypeVar("A", bound="Answer")


@dataclass(frozen=True)
class ListsOfClasses:
    """A table column with a list of classes in each row.

    Args:
        numbers: of the classes, of all rows one after the other.
        sizes: how many each row has.
        names: of all classes.
    """

    numbers: np.ndarray
    sizes: np.ndarray
    names: tuple[str | float | bool, ...]


@dataclass(frozen=True)
class Names:
    """A table column of names. Its type follows from all known names: every table has the same."""

    values: list[Any]
    known: tuple[str | float | bool, ...]


class Answer(ABC):
    """An answer for every row: a frozen dataclass.

    Its arrays and lists have an entry per row, arrays as their first axis. All other fields are the
    same for all rows.
    """

    def select(self: A, rows: slice) -> A:
        """The answer for some rows."""
        some = {name: values[rows] for name, values in self.per_row().items()}
        return replace(self, **some)  # type: ignore[type-var]

    @classmethod
    def joined(cls: type[A], parts: Sequence[A]) -> A:
        """The answer for consecutive rows."""
        each = [part.per_row() for part in parts]
        values = {name: _concatenated([one[name] for one in each]) for name in each[0]}
        return replace(parts[0], **values)  # type: ignore[type-var]

    def per_row(self) -> dict[str, Any]:
        """The arrays and lists with an entry per row."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {name: v for name, v in values.items() if isinstance(v, np.ndarray | list)}

    @abstractmethod
    def document(self) -> Any:
        """What JSON has: dicts, lists and arrays."""

    @abstractmethod
    def columns(self) -> dict[str, Any]:
        """Table columns by name: an array, a list, `Names` or `ListsOfClasses`, a value per row."""

    def rows_below(self) -> dict[str, Any]:
        """Columns of further table rows after those of the prediction, which lack its others."""
        return {}

    def tensors(self) -> dict[str, np.ndarray]:
        """Output tensors of the Open Inference Protocol by name: those of its `Question`."""
        return {}


def _concatenated(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return list(chain.from_iterable(parts))


@dataclass(frozen=True)
class Question:
    """A question that predictive mixtures answer.

    Args:
        name: of the option that asks it.
        of_mixture: arrays by name, with a row each, from the calibrated mixture of some rows.
        answer: the answer from these arrays of all rows; the last argument are the classes.
        tasks: of models that answer it.
        tensors: the shape of each output tensor; a size of −1 depends on the request.
        errors: standard errors by name, from the calibrated and the raw mixture and the arrays of
            `of_mixture`; None if it has none.
        instead: by task, what models that do not answer it have.
        texts, flags: the tensors of texts, by task, and those of true or false.
        member: the answer's name in JSON; by default the option's.
        only: the task of each tensor that models of this task alone have.
        check: raises `InvalidInput` for an option that a model of these classes cannot answer.
    """

    name: str
    of_mixture: Callable[[Mixture, BatchOptions, Calibration | None], dict[str, Tensor]]
    answer: Callable[[Arrays, ResolvedOptions, Classes], Answer]
    tasks: tuple[str, ...]
    tensors: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    errors: (
        Callable[[Mixture, Mixture, TensorsByName, BatchOptions, ErrorOf], dict[str, Tensor]] | None
    ) = None
    instead: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    member: str = ""
    only: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[BatchOptions, Classes], None] | None = None

    def is_asked(self, options: BatchOptions) -> bool:
        """Whether the options ask it: theirs is given, and neither empty nor false."""
        return bool(getattr(options, self.name))

    def key(self, name: str) -> str:
        """The name of one of its arrays in the summary of a prediction."""
        return f"{self.name} {name}"
