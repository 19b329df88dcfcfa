"""The answer that says how improbable the newest values of each history are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from models.evaluation.calibration import Calibration
from models.prediction.answers.answer import Answer, Arrays, Classes, Question
from models.prediction.options import BatchOptions, ResolvedOptions
from models.prediction.predictive import Mixture

NAME = "anomalies"
TASKS = ("forecasting",)
FIRST = "anomaly_"  # of columns and tensors


@dataclass(frozen=True)
class Anomalies(Answer):
    """The newest values of each series, each against its prediction from the values before it.

    Values that are missing, and those after a hole that is too long, are not scored: NaN.

    Args:
        steps: predicted ahead of each series.
        p_values: min(1, 2 min(P(Y ≤ y), P(Y ≥ y))).
        surprises: −log₂ of the p-value, in bits (Greenland 2019, "Valid p-values behave exactly as
            they should", The American Statistician 73).
        flagged: whether the p-value is below the version's false-alarm rate.
        joint_p_values: of all newest values of a series together.
    """

    steps: int
    series: list[str] | None
    times: np.ndarray
    values: Float[np.ndarray, "series newest"]
    p_values: Float[np.ndarray, "series newest"]
    surprises: Float[np.ndarray, "series newest"]
    flagged: Bool[np.ndarray, "series newest"]
    joint_p_values: Float[np.ndarray, "series"]
    joint_flagged: Bool[np.ndarray, "series"]

    def document(self) -> dict[str, Any]:
        """Flat lists, series after series; `joint` has a value per series."""
        count = self.values.shape[1]
        series = [key for key in self.series or () for _ in range(count)]
        return {
            **({} if self.series is None else {"series": series}),
            "times": _written(self.times.reshape(-1)),
            "value": self.values.reshape(-1),
            "p_value": self.p_values.reshape(-1),
            "surprise": self.surprises.reshape(-1),
            "flagged": self.flagged.reshape(-1),
            "joint": {
                **({} if self.series is None else {"series": self.series}),
                "p_value": self.joint_p_values,
                "flagged": self.joint_flagged,
            },
        }

    def columns(self) -> dict[str, np.ndarray]:
        """Lists of all newest values in every row of their series."""
        each = {"time": self.times} | {k.removeprefix(FIRST): v for k, v in self.tensors().items()}
        return {f"{FIRST}{name}": np.repeat(v, self.steps, axis=0) for name, v in each.items()}

    def tensors(self) -> dict[str, np.ndarray]:
        return {
            f"{FIRST}value": self.values,
            f"{FIRST}p_value": self.p_values,
            f"{FIRST}surprise": self.surprises,
            f"{FIRST}flagged": self.flagged,
            f"{FIRST}joint_p_value": self.joint_p_values,
            f"{FIRST}joint_flagged": self.joint_flagged,
        }


def _written(times: np.ndarray) -> list[Any]:
    """Datetimes as RFC 3339; times that are numbers stay so."""
    if not np.issubdtype(times.dtype, np.datetime64):
        return list(times.tolist())
    return [moment.isoformat() + "Z" for moment in times.astype("datetime64[us]").tolist()]


def _of_mixture(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """Nothing: the forecaster adds the arrays, which are not of the predicted steps."""
    return {}


def _answer(arrays: Arrays, options: ResolvedOptions, classes: Classes) -> Anomalies:
    own = dict(arrays)
    series = own.pop("series", None)
    return Anomalies(
        steps=options.horizon, series=None if series is None else series.tolist(), **own
    )


_TABLES = ("value", "p_value", "surprise", "flagged")
_EACH = ("joint_p_value", "joint_flagged")

QUESTION = Question(
    NAME,
    _of_mixture,
    _answer,
    TASKS,
    {f"{FIRST}{n}": (-1, -1) for n in _TABLES} | {f"{FIRST}{n}": (-1,) for n in _EACH},
    flags=(f"{FIRST}flagged", f"{FIRST}joint_flagged"),
)
