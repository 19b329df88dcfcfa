"""An `Answer` → the JSON of the contract. What is not finite becomes null, never `NaN`."""

from typing import Any

import numpy as np
import orjson

from app.serving.question import Answer
from app.serving.text import text_fields
from models.language.prediction import TextPrediction
from models.prediction.prediction import Interval, Prediction


def encode(answer: Answer) -> bytes:
    """The body of the answer to `POST /predict`."""
    prediction = answer.prediction
    document: dict[str, Any] = {} if answer.id is None else {"id": answer.id}
    document |= {
        "model": answer.version.model,
        "version": answer.version.version,
        "prune": prediction.prune,
        "samples": prediction.samples,
        "seed": prediction.seed,
        "sampler": prediction.sampler,
    }
    match prediction:
        case TextPrediction():
            document |= text_fields(prediction)
        case Prediction():
            document |= _row_fields(prediction)
    document["timings_ms"] = answer.timings.milliseconds()
    return orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)


def _row_fields(prediction: Prediction) -> dict[str, Any]:
    document: dict[str, Any] = {}
    if prediction.classes is not None:
        document |= _class_fields(prediction)
    if prediction.times is not None:
        document |= {"times": _times(prediction.times), "paths": prediction.paths}
    document |= {
        "mean": _ready(prediction.mean),
        "variance": {name: _ready(values) for name, values in prediction.variance.items()},
        "intervals": [_interval(interval) for interval in prediction.intervals],
        "mc_error": _ready(prediction.mc_error),
    }
    if prediction.entropy is not None:
        document["entropy"] = {name: _ready(v) for name, v in prediction.entropy.items()}
    document |= {
        "out_of_distribution": prediction.out_of_distribution,
        "ood_score": _ready(prediction.ood_score),
    }
    if prediction.abstained is not None:
        document["abstained"] = prediction.abstained
    if prediction.draws is not None:
        document["draws"] = _ready(prediction.draws)
    return document


def _times(times: np.ndarray) -> list[Any]:
    """Numbers as they are, instants by RFC 3339."""
    if not np.issubdtype(times.dtype, np.datetime64):
        return list(times.tolist())
    return [moment.isoformat() + "Z" for moment in times.astype("datetime64[us]").tolist()]


def _class_fields(prediction: Prediction) -> dict[str, Any]:
    return {
        "labels": list(prediction.labels or ()),
        "classes": list(prediction.classes or ()),
        "probabilities": _ready(prediction.mean),
    }


def _interval(interval: Interval) -> dict[str, Any]:
    return {
        "level": interval.level,
        "kind": interval.kind,
        "lower": _ready(interval.lower),
        "upper": _ready(interval.upper),
    }


def _ready(values: np.ndarray | None) -> np.ndarray | None:
    """As orjson reads it: contiguous in memory. It writes what is not finite as null."""
    return None if values is None else np.ascontiguousarray(values)
