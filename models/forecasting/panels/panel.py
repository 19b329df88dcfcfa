"""The steps of all series one after the other: what windows are cut from.

A panel holds each step once, so that a million windows of a hundred steps take no more memory than
the series themselves.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from models.config import ForecastConfig, ModelConfig
from models.features.feature_encoder import FeatureEncoder
from models.forecasting.features import known_of
from models.forecasting.histories.filling import fill
from models.forecasting.holidays import Holidays
from models.forecasting.panels.observed import draw_unknown
from models.forecasting.panels.stacked import Stacked
from models.forecasting.spacing import Spacing
from models.forecasting.windows import Frame
from models.tensors import TensorRecord


@dataclass(frozen=True)
class Panel(TensorRecord):
    """Encoded series.

    Args:
        values: u of every step, the missing ones filled.
        dynamic: inputs known before each step.
        observed: inputs known after each step.
        unknown: the steps at the end of the window before each step whose `observed` are not known.
        static: inputs of each series as a whole.
        begins: position of the first step of each series, and after the last one the number of all
            steps.
    """

    values: Float64[Tensor, "steps"]
    dynamic: Float[Tensor, "steps dynamic"]
    observed: Float[Tensor, "steps observed"]
    unknown: Int64[Tensor, "steps"]
    static: Float[Tensor, "series static"]
    begins: Int64[Tensor, "bounds"]

    @classmethod
    def of(
        cls,
        stacked: Stacked,
        config: ModelConfig,
        frame: Frame,
        encoder: FeatureEncoder,
        *,
        spacing: Spacing,
        holidays: Holidays | None = None,
    ) -> "Panel":
        """Encode series; the key once for each of them."""
        columns, begins = stacked.columns, stacked.begins
        forecast = config.forecast or ForecastConfig()
        known = known_of(encoder, config, columns, begins[:-1])
        known = known.with_holidays(holidays, columns[str(forecast.time_column)], spacing)
        filled = np.array(frame.transform(columns[config.target]))
        for start, stop in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            filled[start:stop] = fill(filled[start:stop], frame.season)
        values = torch.from_numpy(filled)
        unknown = draw_unknown(len(values), int(forecast.horizon or 1), config.training.seed)
        first = torch.from_numpy(begins)
        return cls(values, known.dynamic, known.observed, unknown, known.static, first)

    @property
    def width(self) -> int:
        """The number of inputs of a step beside the series' own; observed ones are marked."""
        observed = self.observed.shape[1]
        return self.dynamic.shape[1] + observed + int(observed > 0)

    def series_of(self, at: Int64[Tensor, "rows"]) -> Int64[Tensor, "rows"]:
        """The number of the series in which each position lies."""
        return torch.searchsorted(self.begins, at, right=True) - 1
