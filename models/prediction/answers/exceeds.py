"""The probability that a number exceeds a threshold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
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
from models.prediction.answers.parts import INSTEAD, at_values, shift
from models.prediction.number_mixture import NumberMixture
from models.prediction.options import BatchOptions, ResolvedOptions
from models.prediction.outputs import NUMBERS
from models.prediction.predictive import Mixture


@dataclass(frozen=True)
class Exceedance(Answer):
    """P(y > t) of each row for every threshold t, in units of the target."""

    thresholds: tuple[float, ...]
    probabilities: Float[np.ndarray, "rows thresholds"]

    def document(self) -> list[dict[str, Any]]:
        each = zip(self.thresholds, self.probabilities.T, strict=True)
        return [{"threshold": t, "probability": np.ascontiguousarray(p)} for t, p in each]

    def columns(self) -> dict[str, np.ndarray]:
        each = zip(self.thresholds, self.probabilities.T, strict=True)
        return {column_name(threshold): values for threshold, values in each}

    def tensors(self) -> dict[str, np.ndarray]:
        return {"exceeds": self.probabilities}


def column_name(threshold: float) -> str:
    """The column of a threshold, such as "exceeds_10.0"."""
    return f"exceeds_{float(threshold)}"


def of_mixture(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """The survival function of the calibrated mixture, which keeps the digits of rare events."""
    assert isinstance(mixture, NumberMixture)
    return {"probabilities": mixture.survival(at_values(mixture, options.exceeds)).T}


def errors(
    mixture: Mixture, raw: Mixture, arrays: TensorsByName, options: BatchOptions, error: ErrorOf
) -> dict[str, Tensor]:
    """Of S_s(t), and of the shift of the sample times f(t)."""
    assert isinstance(mixture, NumberMixture)
    moved, found = shift(mixture, raw), {}
    for threshold in options.exceeds:
        value = at_values(mixture, [threshold])
        parts = mixture.survival_parts(value).squeeze(0)
        parts = parts if moved is None else parts + mixture.density(value) * moved
        found[column_name(threshold)] = error(parts)
    return found


def answer(arrays: Arrays, options: ResolvedOptions, classes: Classes) -> Exceedance:
    return Exceedance(options.exceeds, arrays["probabilities"])


QUESTION = Question(
    "exceeds",
    of_mixture,
    answer,
    NUMBERS,
    {"exceeds": (-1, -1)},
    errors,
    INSTEAD,
)
