"""Asks a stored model as the service does: a request's JSON goes in, the answer's JSON comes out.

Everything that the golden answers need to know about the code stands in this module.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any
from unittest.mock import patch

import orjson
from pydantic import TypeAdapter

from core.inputs.records import decode_columns, read_rows
from core.predictions.document import to_document
from models.evaluation.adaptive import Adapted
from models.model import TrainedModel
from models.prediction.compiled.compiler import compiler
from models.prediction.options import PredictOptions

Json = dict[str, Any]
ORJSON = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_PASSTHROUGH_DATACLASS


def ask(model: TrainedModel, request: Json) -> Json:
    """The answer of `POST /predict`; `adapted` of the request is what labels have taught."""
    given = dict(request)
    inputs, future, adapted = (given.pop(name, None) for name in ("inputs", "future", "adapted"))
    options = model.resolve(TypeAdapter(PredictOptions).validate_python(given))
    if adapted is not None:
        options = replace(options, adapted=tuple(Adapted(**one) for one in adapted))
    columns = read_rows(inputs).decode(model.inputs, model.unread)
    ahead = None if future is None else decode_columns(future, model.future_inputs)
    prediction = model.predict_rows(model.read(columns, ahead, options), options)
    document = to_document(model.with_reasons(prediction, columns))
    return dict(json.loads(orjson.dumps(document, option=ORJSON, default=asdict)))


@contextmanager
def by(backend: str) -> Iterator[None]:
    """Predict by "kernels", once they are compiled, or by "torch" alone."""
    if backend == "kernels":
        assert compiler().wait(), "the kernels cannot be compiled"
        yield
    else:
        with patch.object(compiler(), "kernels", None):
            yield
