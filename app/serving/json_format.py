"""`POST /predict` in JSON: bytes → `Question`, `Answer` → bytes."""

from functools import partial
from typing import Any

from app.bodies import off_loop, parse, refuse_non_finite
from app.metrics import Metrics, PredictMeasure
from app.schemas.predictions import PredictParameters
from app.serving.decode import decode, num_rows
from app.serving.encode import encode
from app.serving.predictor import Predictor
from app.serving.question import Question
from app.validation import validate


async def answer_json(
    body: bytes, predictor: Predictor, metrics: Metrics, measure: PredictMeasure
) -> bytes:
    """The JSON answer to a JSON question.

    Raises:
        NotParseable: it is not JSON. And whatever `Predictor.answer` raises.
    """
    questions = [await _read(body, measure)]
    del body  # several times the size of the columns, like the question: not kept in the queue
    answer = await predictor.answer(questions.pop(), measure)
    with measure.stage("encode"):
        text = await off_loop(answer.num_bytes, encode, answer)
    await off_loop(answer.num_bytes, metrics.observe_prediction, measure, answer.prediction)
    return text


async def _read(body: bytes, measure: PredictMeasure) -> Question:
    with measure.stage("decode"):
        return await off_loop(len(body), read_question, body)


def read_question(body: bytes) -> Question:
    """Separate the rows, at which no schema looks, from the parameters.

    Raises:
        NotParseable, Invalid: see `app.bodies`.
    """
    document = parse(body)
    inputs: Any = document.pop("inputs", None)
    refuse_non_finite(document)
    asked = validate(PredictParameters, document)
    return Question.of(asked, num_rows(inputs), len(body), partial(decode, inputs))
