"""Trace spans of a prediction's stages, from the times measured for the metrics."""

from time import time_ns

from opentelemetry import trace

from app.metrics.metrics import PredictMeasure
from app.serving.question import Answer
from core.telemetry import tracing


def record_stages(measure: PredictMeasure, answer: Answer) -> None:
    """Add the stages to the request's span, after the response is encoded.

    Decoding begins with the request; the other stages follow each other up to its end. The model is
    resolved and loaded in between.
    """
    request = trace.get_current_span()
    if not request.is_recording():
        return
    end = time_ns()
    start = end - round(1e9 * measure.seconds)
    nanoseconds = {name: round(1e9 * seconds) for name, seconds in measure.stages.items()}
    tracing.record("decode", start, start + nanoseconds.pop("decode"))
    for name in ("encode", "compute", "queue"):
        start = end - nanoseconds[name]
        tracing.record(name, start, end)
        end = start
    request.set_attributes(
        {
            "credence.model": measure.model,
            "credence.version": answer.version.version,
            "credence.rows": answer.prediction.num_rows,
            "credence.samples": answer.prediction.samples,
        }
    )
