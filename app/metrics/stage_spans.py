"""A prediction's stages in a trace, from the times that are measured for the metrics anyway."""

from time import time_ns

from opentelemetry import trace

from app.metrics.metrics import PredictMeasure
from app.serving.question import Answer
from core.telemetry import tracing


def record_stages(measure: PredictMeasure, answer: Answer) -> None:
    """Add the stages to the request's span, once the answer is written.

    Decoding begins with the request; the others end with it, one after the other. What lies between
    is the search for the model, and its loading.
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
