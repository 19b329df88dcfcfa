"""Quantiles of a number: the values that it is below with given probabilities."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.evaluation.calibration import Calibration
from models.prediction.answers.answer import (
    Answer,
    Arrays,
    Classes,
    ErrorOf,
    Question,
    TensorsByName,
)
from models.prediction.answers.parts import INSTEAD, shift
from models.prediction.number_mixture import NumberMixture
from models.prediction.options import BatchOptions, ResolvedOptions
from models.prediction.outputs import NUMBERS
from models.prediction.predictive import Mixture

_AT_ONCE = 16  # levels that are solved together, as many as intervals have


@dataclass(frozen=True)
class Quantiles(Answer):
    """The smallest value y of each row with P(Y ≤ y) ≥ p, for every p."""

    levels: tuple[float, ...]
    values: Float[np.ndarray, "rows levels"]

    def document(self) -> list[dict[str, Any]]:
        each = zip(self.levels, self.values.T, strict=True)
        return [{"p": p, "values": np.ascontiguousarray(values)} for p, values in each]

    def columns(self) -> dict[str, np.ndarray]:
        return {column_name(p): v for p, v in zip(self.levels, self.values.T, strict=True)}

    def tensors(self) -> dict[str, np.ndarray]:
        return {"quantile_values": self.values}


def column_name(level: float) -> str:
    """The column of a quantile, such as "quantile_0.25"."""
    return f"quantile_{float(level)}"


def of_mixture(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """The quantiles of the calibrated mixture."""
    assert isinstance(mixture, NumberMixture)
    levels = options.quantiles
    parts = [levels[i : i + _AT_ONCE] for i in range(0, len(levels), _AT_ONCE)]
    return {"values": torch.cat([mixture.quantiles(part) for part in parts]).T}


def errors(
    mixture: Mixture, raw: Mixture, arrays: TensorsByName, options: BatchOptions, error: ErrorOf
) -> dict[str, Tensor]:
    """Of −F_s(q) ÷ f(q), and of the shift of the sample."""
    assert isinstance(mixture, NumberMixture)
    moved, found = shift(mixture, raw), {}
    for level, value in zip(options.quantiles, arrays["values"].T, strict=True):
        parts = mixture.quantile_parts(value)
        found[column_name(level)] = error(parts if moved is None else parts + moved)
    return found


def answer(arrays: Arrays, options: ResolvedOptions, classes: Classes) -> Quantiles:
    return Quantiles(options.quantiles, arrays["values"])


QUESTION = Question(
    "quantiles",
    of_mixture,
    answer,
    NUMBERS,
    {"quantile_values": (-1, -1)},
    errors,
    INSTEAD,
)
