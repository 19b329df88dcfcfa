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

EVER = ("any_above", "any_below")
"""Of forecasts: the probability of a value beyond the threshold at some step up to each one."""


@dataclass(frozen=True)
class Exceedance(Answer):
    """P(y > t) of each row for every threshold t, in units of the target.

    Args:
        any_above, any_below: of a forecast, the probability that its path is above, or below, at
            some step up to this one.
    """

    thresholds: tuple[float, ...]
    probabilities: Float[np.ndarray, "rows thresholds"]
    any_above: Float[np.ndarray, "rows thresholds"] | None = None
    any_below: Float[np.ndarray, "rows thresholds"] | None = None

    def document(self) -> list[dict[str, Any]]:
        return [
            {"threshold": threshold}
            | {_MEMBERS.get(n, n): np.ascontiguousarray(v[:, i]) for n, v in self.tensors().items()}
            for i, threshold in enumerate(self.thresholds)
        ]

    def columns(self) -> dict[str, np.ndarray]:
        return {
            column_name(threshold, name): values[:, i]
            for i, threshold in enumerate(self.thresholds)
            for name, values in self.tensors().items()
        }

    def tensors(self) -> dict[str, np.ndarray]:
        ever = {name: getattr(self, name) for name in EVER}
        return {"exceeds": self.probabilities} | {k: v for k, v in ever.items() if v is not None}


_MEMBERS = {"exceeds": "probability"}


def column_name(threshold: float, name: str = "exceeds") -> str:
    """The column of a threshold, such as "exceeds_10.0"."""
    return f"{name}_{float(threshold)}"


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
    ever = {name: arrays[name] for name in EVER if name in arrays}
    return Exceedance(options.exceeds, arrays["probabilities"], **ever)


QUESTION = Question(
    "exceeds",
    of_mixture,
    answer,
    NUMBERS,
    dict.fromkeys(("exceeds", *EVER), (-1, -1)),
    errors,
    INSTEAD,
    only=dict.fromkeys(EVER, "forecasting"),
)
