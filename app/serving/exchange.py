"""A question over HTTP, whatever its wire format: read it, have it answered, write the answer."""

from collections.abc import Callable
from typing import TypeVar

from app.dependencies import Services
from app.http.bodies import off_loop
from app.metrics.metrics import PredictMeasure
from app.metrics.stage_spans import record_stages
from app.serving.question import Answer, Question
from core.access.callers import Caller

T = TypeVar("T")

Write = Callable[[Answer], T]
Read = Callable[[bytes], tuple[Question, Write[T]]]
"""The question that is in a body, and what writes the answer to it."""


async def exchange(
    body: bytes, read: Read[T], services: Services, measure: PredictMeasure, caller: Caller
) -> T:
    """What `read`'s writer makes of the answer; bodies and answers that are large, in threads.

    Raises:
        NotParseable, Invalid: from reading. And whatever `Predictor.answer` raises.
    """
    with measure.stage("decode"):
        question, write = await off_loop(len(body), read, body)
    questions = [question]
    del body, question  # several times the size of the columns: not kept in the queue
    answer = await services.predictor.answer(questions.pop(), measure, caller)
    with measure.stage("encode"):
        written = await off_loop(answer.num_bytes, write, answer)
    record_stages(measure, answer)
    await off_loop(
        answer.num_bytes, services.metrics.observe_prediction, measure, answer.prediction
    )
    return written
