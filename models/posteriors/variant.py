"""One stored posterior of a model, and what was measured of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from models.config import Json
from models.evaluation.calibration import Calibration
from models.evaluation.out_of_distribution import Detector
from models.inference.method import State


@dataclass(frozen=True)
class Variant:
    """One posterior of a version: the full one (prune 0) or a pruned one.

    Its `detector` is None until it is scored, and in models of texts.
    """

    prune: float
    state: State
    metrics: Json = field(default_factory=dict)
    num_bytes: int = 0
    error_factors: Mapping[int, float] = field(default_factory=dict)
    calibration: Calibration | None = None  # None: as the posterior has it
    bfloat16: bool = False  # whether its rounding is small beside the sampling error
    detector: Detector | None = None

    def describe(self) -> Json:
        return {
            "prune": self.prune,
            "num_weights": self.state.num_weights,
            "bytes": self.num_bytes,
            "calibration": self.calibration and self.calibration.describe(),
            "metrics": self.metrics,
            **({"out_of_distribution": asdict(self.detector)} if self.detector else {}),
        }
