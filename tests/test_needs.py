"""The marks of tests: found in code, and missed where something is started without one."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.app.running import serving
from tests.needs import Watch, needs_of


def start_service() -> None:
    with serving(None):  # type: ignore[arg-type]
        pass


def start_process() -> list[int]:
    return [subprocess.call([sys.executable, "-c", code]) for code in ("1", "2")]


def start_nothing() -> int:
    return len(sys.argv)


@pytest.mark.parametrize(
    ("function", "expected"),
    [(start_service, {"server"}), (start_process, {"process"}), (start_nothing, set())],
)
def test_a_mark_is_found_in_what_a_function_calls(
    function: Callable[[], object], expected: set[str]
) -> None:
    assert needs_of(function) >= expected
    assert expected or not needs_of(function)


@pytest.mark.process
def test_a_process_is_seen() -> None:
    watch = Watch()
    watch.begin()
    assert watch.started() == set()
    start_process()
    assert watch.started() == {"process"}


@pytest.mark.process
def test_counting_the_cores_is_no_process_of_a_test() -> None:
    watch = Watch()
    watch.begin()
    subprocess.run(["lscpu"], check=False, capture_output=True)
    assert watch.started() == set()
