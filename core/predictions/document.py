"""A prediction as the members of a JSON object; `models.prediction.outputs` names them."""

from dataclasses import asdict
from typing import Any

import numpy as np

from models.joint.prediction import JointPrediction
from models.prediction.prediction import Interval, Prediction, RowPrediction


def to_document(prediction: Prediction) -> dict[str, Any]:
    """The members of the answer of `POST /predict`, from the variant to the outputs.

    Arrays stay arrays; `record` gives the members of those values that are dataclasses.
    """
    document: dict[str, Any] = {
        "prune": prediction.prune,
        "samples": prediction.samples,
        "seed": prediction.seed,
        "sampler": prediction.sampler,
    }
    document |= _members(prediction)
    if isinstance(prediction, JointPrediction):
        document["targets"] = {name: _members(one) for name, one in prediction.targets.items()}
    return document


def _members(prediction: Prediction) -> dict[str, Any]:
    """The outputs and answers of a prediction."""
    document: dict[str, Any] = {}
    for output in prediction.outputs:
        values = output.values(prediction)
        if values is not None or output.is_nullable:
            *outer, name = output.member.split(".")
            place = document.setdefault(outer[0], {}) if outer else document
            place[name] = _ready(values)
    if isinstance(prediction, RowPrediction):
        document |= {name: answer.document() for name, answer in prediction.answers.items()}
    return document


def _ready(values: Any) -> Any:
    """Values for orjson: arrays are contiguous in memory, times are RFC 3339 texts."""
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind == "M":
        return rfc3339(values)
    return values if values.flags.c_contiguous else np.ascontiguousarray(values)


def rfc3339(times: np.ndarray) -> list[Any]:
    """Datetimes as texts; times that are numbers stay so."""
    if not np.issubdtype(times.dtype, np.datetime64):
        return list(times.tolist())
    return [moment.isoformat() + "Z" for moment in times.astype("datetime64[us]").tolist()]


def record(value: Any) -> dict[str, Any]:
    """The members of a dataclass. Intervals leave out the members of other kinds."""
    return _interval(value) if isinstance(value, Interval) else asdict(value)


def _interval(interval: Interval) -> dict[str, Any]:
    lower, upper = _ready(interval.lower), _ready(interval.upper)
    adapted = {"adapted_level": interval.adapted_level} if interval.kind == "adaptive" else {}
    of = {"level": interval.level, "kind": interval.kind}
    return {**of, **adapted, "lower": lower, "upper": upper}
