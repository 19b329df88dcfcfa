"""Sets of classes that contain the true one with a wanted probability: the most probable ones.

Credible ones are the smallest with a predicted probability of `level` or more. Conformal ones
contain the truth with the probability `level` for rows like the calibration rows.
"""

from typing import Any

import numpy as np
from torch import Tensor

from models.evaluation.calibration import Calibration, ClassCalibration
from models.evaluation.class_sets import RankedClasses
from models.likelihoods.class_mixture import CategoricalMixture, Mixture
from models.prediction.declared_outputs import CLASSES, NUMBERS, SET_LEVEL, Output
from models.prediction.options import BatchOptions, IntervalKind, ResolvedOptions
from models.prediction.outputs.question import Question
from models.prediction.summary import Summary


def _output(name: str, kind: IntervalKind) -> Output:
    place: dict[str, Any] = {"along": SET_LEVEL, "records": "sets"}
    unit = "set of classes"
    return Output(name, unit, CLASSES, "classes", kind=kind, option="set_level", **place)


OUTPUTS = (_output("set", "credible"), _output("conformal_set", "conformal"))


def of_mixture(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """The classes by their probability, and how many of them each kind of set has.

    A version that was not calibrated has no conformal sets.
    """
    assert isinstance(mixture, CategoricalMixture)
    assert options.set_level is not None
    ranked = RankedClasses.of(mixture.mean())
    sizes = {"set_order": ranked.order.int()}
    if "credible" in options.interval_kinds:
        sizes["set"] = ranked.credible_sizes(options.set_level).int()
    sets = calibration.sets if isinstance(calibration, ClassCalibration) else None
    if sets is not None and "conformal" in options.interval_kinds:
        sizes["conformal_set"] = sets.sizes(ranked, options.set_level).int()
    return sizes


def _finish(summary: Summary, options: ResolvedOptions) -> Summary:
    """The names of the classes in each set, the most probable first."""
    ordered = np.array(summary.get("classes"), dtype=object)[summary["set_order"]].tolist()
    sets = {
        output.name: [
            row[:size] for row, size in zip(ordered, summary[output.name].tolist(), strict=True)
        ]
        for output in OUTPUTS
        if output.name in summary.values
    }
    return summary.without("set_order").with_values(**sets)


QUESTION = Question(
    "set_level",
    CLASSES,
    OUTPUTS,
    of_mixture,
    finish=_finish,
    instead=dict.fromkeys(NUMBERS, "for numbers there are `intervals`"),
)
