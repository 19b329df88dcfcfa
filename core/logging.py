"""Structured logs: one line per event, with the request or job it belongs to."""

import logging
import sys
from typing import Any

import orjson
import structlog
from structlog.contextvars import bind_contextvars, bound_contextvars, clear_contextvars
from structlog.typing import EventDict, Processor

__all__ = ["bind_contextvars", "bound_contextvars", "clear_contextvars", "configure_logging"]


def configure_logging(format: str = "text", level: str = "info") -> None:
    """Send structlog's and the standard library's records to stderr in one form.

    `request_id` and `job_id`, once bound with `bind_contextvars`, stand in every line that follows
    in the same task or thread. Calling it again replaces the configuration.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_tail(format)],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())


def _tail(format: str) -> list[Processor]:
    """The processors that turn an event into its line."""
    if format == "json":
        return [
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(serializer=_to_json),
        ]
    return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]


def _to_json(event: EventDict, **_: Any) -> str:
    return orjson.dumps(event, default=str).decode()
