"""`POST /predict` in JSON: bytes → `Question`. `encode` writes the answer."""

from functools import partial
from typing import Any

from app.http.bodies import parse, refuse_non_finite
from app.http.validation import validate
from app.schemas.predictions import PredictParameters
from app.serving.decode import decode, decode_columns, num_rows
from app.serving.question import Question


def read_question(body: bytes) -> Question:
    """Separate the rows, at which no schema looks, from the parameters.

    Raises:
        NotParseable, Invalid: see `app.http.bodies`.
    """
    document = parse(body)
    inputs: Any = document.pop("inputs", None)
    future: Any = document.pop("future", None)
    refuse_non_finite(document)
    asked = validate(PredictParameters, document)
    return Question.of(
        asked,
        num_rows(inputs),
        len(body),
        partial(decode, inputs),
        decode_future=None if future is None else partial(decode_columns, future, where="future"),
        may_be_series=True,
    )
