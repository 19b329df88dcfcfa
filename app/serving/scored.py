"""Labelled rows for the engine: what scores a model where others predict with it."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from models.evaluation.metrics import PerRowScores
from models.forecasting.model import Forecaster
from models.forecasting.rollout import History
from models.model import BayesianModel
from models.prediction.prediction import PredictOptions


@dataclass(frozen=True)
class Scored:
    """What the rows whose truth is known score, each by itself."""

    samples: int
    scores: PerRowScores


@dataclass(frozen=True)
class Labelled:
    """A model, and the truth of the rows that it is about to be given; unknown is NaN or None."""

    model: BayesianModel
    truth: np.ndarray

    def predict_rows(self, x: Tensor | History, options: PredictOptions) -> Scored:
        """In the engine's words; what it does is to score."""
        if isinstance(x, Tensor):
            return Scored(options.samples, self.model.row_scores(x, self.truth, options))
        assert isinstance(self.model, Forecaster)
        return Scored(options.samples, self.model.row_scores(x, self.truth, options))
