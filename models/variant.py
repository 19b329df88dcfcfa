"""One stored posterior of a model, and its measured properties."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from models.config import Json
from models.evaluation.calibration import Calibration
from models.evaluation.conformal_rank import Reference
from models.evaluation.detector import Detector
from models.evaluation.path_calibration import PathCalibration
from models.expected_scores.expectation import Promise
from models.inference.method import State
from models.prediction.default_sampler.record import MeasuredSamplers
from models.prediction.products import Rounding

PrunedBy = Literal["weights", "units"]


@dataclass(frozen=True)
class Variant:
    """One posterior of a version: the full one (prune 0) or a pruned one.

    `error_factors` maps numbers of draws to the factor on the Monte-Carlo error of chains, whose
    draws depend on each other; other methods do not use it. `output_factors` maps numbers of evenly
    spread samples to the factor on the error that they state, for each output, and `sobol_factors`
    for all others; versions of earlier releases have one factor for all outputs.
    `detector` is None before the variant is scored, and always None for language models.
    """

    prune: float
    state: State
    metrics: Json = field(default_factory=dict)
    num_bytes: int = 0
    error_factors: Mapping[int, float] = field(default_factory=dict)
    calibration: Calibration | PathCalibration | None = None  # None: not calibrated
    detector: Detector | None = None
    sobol_factors: Mapping[int, float] = field(default_factory=dict)
    output_factors: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    promise: Promise | None = None  # what may be expected of new rows; None: it was not measured
    samplers: MeasuredSamplers | None = None  # None: not measured
    rounding: Rounding | None = None  # by bfloat16; None: no large product, or release 0.1
    by: PrunedBy | None = None  # what was ranked; None: not pruned, or by weights in release 0.1

    @property
    def rounded(self) -> int | None:
        """The least weights of a layer whose products may be in bfloat16; None: none may."""
        rounding = self.rounding
        return rounding.weights if rounding is not None and rounding.is_hidden else None

    @property
    def reference(self) -> Reference | None:
        """The calibration rows that scores of labelled rows join; None without residuals."""
        return None if self.calibration is None else self.calibration.reference()

    def describe(self) -> Json:
        return {
            "prune": self.prune,
            **({"by": self.by or "weights"} if self.prune else {}),
            "num_weights": self.state.num_weights,
            "bytes": self.num_bytes,
            "calibration": self.calibration and self.calibration.describe(),
            "metrics": self.metrics,
            **({"out_of_distribution": asdict(self.detector)} if self.detector else {}),
            **({"auto": auto} if (auto := self.samplers and self.samplers.describe()) else {}),
            **(
                {"rounding": asdict(self.rounding) | {"bfloat16": self.rounding.is_hidden}}
                if self.rounding
                else {}
            ),
        }
