"""Labelled rows for the engine: what scores a model where others predict with it."""

from dataclasses import dataclass

import numpy as np

from models.evaluation.metrics import PerRowScores
from models.model import Encoded, TrainedModel
from models.prediction.prediction import PredictOptions


@dataclass(frozen=True)
class Scored:
    """What the rows whose truth is known score, each by itself."""

    samples: int
    scores: PerRowScores


@dataclass(frozen=True)
class Labelled:
    """A model, and the truth of the rows that it is about to be given; unknown is NaN or None."""

    model: TrainedModel
    truth: np.ndarray

    def predict_rows(self, x: Encoded, options: PredictOptions) -> Scored:
        """In the engine's words; what it does is to score."""
        return Scored(options.samples, self.model.row_scores(x, self.truth, options))
