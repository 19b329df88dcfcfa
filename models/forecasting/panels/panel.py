"""The steps of all series one after the other: what windows are cut from.

A panel holds each step once, so that a million windows of a hundred steps take no more memory than
the series themselves.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from models.features.feature_encoder import FeatureEncoder
from models.forecasting.features import known_of_all
from models.forecasting.histories.filling import fill
from models.forecasting.panels.stacked import Stacked
from models.forecasting.windows import Frame
from models.tensors import TensorRecord


@dataclass(frozen=True)
class Panel(TensorRecord):
    """Encoded series.

    Args:
        values: u of every step, the missing ones filled.
        dynamic: inputs known before each step.
        static: inputs of each series as a whole.
        begins: position of the first step of each series, and after the last one the number of all
            steps.
    """

    values: Float64[Tensor, "steps"]
    dynamic: Float[Tensor, "steps dynamic"]
    static: Float[Tensor, "series static"]
    begins: Int64[Tensor, "bounds"]

    @classmethod
    def of(
        cls,
        stacked: Stacked,
        target: str,
        frame: Frame,
        encoder: FeatureEncoder,
        static: int,
    ) -> "Panel":
        """Encode series; static columns once for each of them.

        Args:
            static: the number of static inputs (`static_width`).
        """
        columns, begins = stacked.columns, stacked.begins
        known = known_of_all(encoder, static, columns, begins[:-1])
        values = np.array(frame.transform(columns[target]))
        for start, stop in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            values[start:stop] = fill(values[start:stop], frame.season)
        return cls(torch.from_numpy(values), known.dynamic, known.static, torch.from_numpy(begins))

    def series_of(self, at: Int64[Tensor, "rows"]) -> Int64[Tensor, "rows"]:
        """The number of the series in which each position lies."""
        return torch.searchsorted(self.begins, at, right=True) - 1
