"""Logs: one line per event, with what it belongs to, in either form."""

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from core.telemetry.logging import bind_contextvars, clear_contextvars, configure_logging


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, before = root.handlers, root.level, structlog.get_config()
    yield
    root.handlers, root.level = handlers, level
    clear_contextvars()
    structlog.configure(**before)


def test_json_lines_carry_the_context(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json", "info")
    bind_contextvars(request_id="abc", job_id="job_1")
    structlog.get_logger("core").info("claimed", attempt=2)
    logging.getLogger("uvicorn").warning("port %d is taken", 8000)
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    context = {"request_id": "abc", "job_id": "job_1"}
    wanted = {"message": "claimed", "attempt": 2, "level": "info", "logger": "core"} | context
    assert first.items() >= wanted.items()
    assert second.items() >= ({"message": "port 8000 is taken"} | context).items()
    assert second["timestamp"].endswith("Z")


@pytest.mark.parametrize("form", ["text", "json"])
def test_less_than_the_level_is_not_written_and_nothing_twice(
    capsys: pytest.CaptureFixture[str], form: str
) -> None:
    configure_logging("text", "info")
    configure_logging(form, "warning")
    bind_contextvars(request_id="abc")
    structlog.get_logger().info("quiet")
    logging.getLogger("celery").info("quiet")
    structlog.get_logger().warning("loud")
    [line] = capsys.readouterr().err.splitlines()
    assert "loud" in line
    assert "abc" in line


@pytest.mark.parametrize("form", ["text", "json"])
def test_tracebacks_show_no_data_of_callers(capsys: pytest.CaptureFixture[str], form: str) -> None:
    configure_logging(form, "info")
    row = {"salary": 123_456}
    try:
        assert row["name"]
    except KeyError:
        structlog.get_logger().exception("failed")
    written = capsys.readouterr().err
    assert "KeyError" in written
    assert "123456" not in written


def test_a_terminal_obeys_no_value_of_a_text_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("text", "info")
    log = structlog.get_logger()
    log.info("a\x1b[2Jrequest", path="/models/\x1b[2J\x9b\u2028\nforged=1")
    try:
        raise ValueError("of \x1b[2J")
    except ValueError:
        log.exception("failed")
    written = capsys.readouterr().err
    assert "/models/\\\\x1b[2J\\\\x9b\\\\u2028\\\\nforged=1" in written
    assert "ValueError: of \\x1b[2J" in written
    assert all(each.isprintable() or each == "\n" for each in written)
