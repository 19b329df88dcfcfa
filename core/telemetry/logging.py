"""Structured logs: one line per event, with the request or job it belongs to."""

import logging
import sys
from typing import Any

import orjson
import structlog
from opentelemetry import trace
from structlog.contextvars import bind_contextvars, bound_contextvars, clear_contextvars
from structlog.typing import EventDict, Processor

__all__ = ["bind_contextvars", "bound_contextvars", "clear_contextvars", "configure_logging"]

QUIET = ("alembic", "httpx", "httpcore")  # their INFO lines are for debugging


def configure_logging(format: str = "text", level: str = "info") -> None:
    """Write the records of structlog and of the standard library to stderr in one format.

    Values bound with `bind_contextvars`, such as `request_id` and `job_id`, are in every later line
    of the same task or thread; `trace_id` and `span_id` are in the lines of a span. A second call
    replaces the configuration.
    """
    shared = _shared_processors()
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *(_json_processors() if format == "json" else _text_processors()),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    # No line shows its place in the code, thread or process, and finding them takes a quarter of
    # its time: Python's guide to logging switches them off by these names.
    logging._srcfile = None  # noqa: SLF001
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    for name in QUIET:
        logging.getLogger(name).setLevel(max(root.level, logging.WARNING))


def _shared_processors() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        _add_trace,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _add_trace(logger: Any, method: str, event: EventDict) -> EventDict:
    """Add the line's trace and span, in the format of W3C."""
    present = trace.get_current_span().get_span_context()
    if present.is_valid:
        event["trace_id"] = trace.format_trace_id(present.trace_id)
        event["span_id"] = trace.format_span_id(present.span_id)
    return event


def _json_processors() -> list[Processor]:
    return [
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer("message"),
        structlog.processors.JSONRenderer(serializer=_to_json),
    ]


def _text_processors() -> list[Processor]:
    """For a terminal. Tracebacks do not show variables, which may hold a caller's data."""
    return [
        structlog.processors.format_exc_info,
        _escape_controls,
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        ),
    ]


def _escape_controls(logger: Any, method: str, event: EventDict) -> EventDict:
    """Show control characters, of a path for instance, so that a terminal does not obey them."""
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            kept = "\n\t" if key == "exception" else ""
            event[key] = "".join(_shown(each, kept) for each in value)
    return event


def _shown(character: str, kept: str) -> str:
    if character.isprintable() or character in kept:
        return character
    return character.encode("unicode_escape").decode("ascii")


def _to_json(event: dict[str, Any], **_: Any) -> str:
    return orjson.dumps(event, default=str).decode()
