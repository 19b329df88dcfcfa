"""The probability that a number exceeds a threshold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.evaluation.calibration import Calibration
from models.prediction.answers.answer import Answer, Arrays, Classes, Question
from models.prediction.number_mixture import NumberMixture
from models.prediction.options import BatchOptions, ResolvedOptions
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
        return {f"exceeds_{threshold}": values for threshold, values in each}

    def tensors(self) -> dict[str, np.ndarray]:
        return {"exceeds": self.probabilities}


def of_mixture(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """1 − F(t) of the calibrated mixture."""
    assert isinstance(mixture, NumberMixture)
    values = [1 - mixture.cdf(_threshold(mixture, t)) for t in options.exceeds]
    return {"probabilities": torch.stack(values, dim=-1)}


def _threshold(mixture: NumberMixture, threshold: float) -> Float[Tensor, "rows"]:
    rows = mixture.predicted_means()[0]
    return torch.full_like(rows, threshold)


def answer(arrays: Arrays, options: ResolvedOptions, classes: Classes) -> Exceedance:
    return Exceedance(options.exceeds, arrays["probabilities"])


QUESTION = Question("exceeds", of_mixture, answer, ("regression",), {"exceeds": (-1, -1)})
