"""What a test needs beside its own process, as marks.

The marks of a test are found in the code of the test and of its fixtures: what they call, and what
functions of `tests` call in turn. Where that does not tell, the test has `pytest.mark` itself. A
test that starts something without having the mark fails: `Watch` sees it.
"""

import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

# Modules, functions, classes and methods; a test that uses one of them needs what the mark says.
STARTERS = {
    "HTTPServer": "server",
    "ThreadingHTTPServer": "server",
    "create_server": "server",
    "start_server": "server",
    "uvicorn": "server",
    "credence.serving.api_thread": "server",
    "credence.serving.listener": "server",
    "multiprocessing": "process",
    "subprocess": "process",
    "credence.estimators": "training",
    "models.training.train.train": "training",
    "worker.runner.JobRunner": "training",
    "playwright.sync_api": "browser",
    "tests.integration.stack": "docker",
}
# Values of parametrized fixtures that stand for a service of their own.
SERVICES = ("moto", "postgresql", "production", "rclone", "redis")
# Python's audit events.
EVENTS = {
    "os.fork": "process",
    "os.posix_spawn": "process",
    "subprocess.Popen": "process",
    "socket.bind": "server",
}
HARMLESS = {"lscpu"}  # scikit-learn counts the cores with it, once per process
FEW_STEPS = 20  # of an optimizer: up to here a test of one step, not a training


def mark(items: list[pytest.Item]) -> None:
    """Add to each test the marks of what it needs."""
    for item in items:
        for name in sorted(needs(item)):
            item.add_marker(name)


def needs(item: pytest.Item) -> set[str]:
    """The marks of what a test and its fixtures start."""
    fixtures = getattr(item, "_fixtureinfo", None)
    definitions = fixtures.name2fixturedefs if fixtures else {}
    functions = [each[-1].func for name, each in definitions.items() if each]
    functions += [item.function] if isinstance(item, pytest.Function) else []
    found = {need for function in functions for need in needs_of(inspect.unwrap(function))}
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    if any(isinstance(value, str) and value in SERVICES for value in values):
        found |= {"process", "server"}
    if "browser" in found:
        found.add("process")
    return found


@cache
def needs_of(function: Callable[..., Any]) -> frozenset[str]:
    """The marks of a function of the tests, by all that it refers to."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[Any] = [function]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        found |= {STARTERS[name] for name in names_of(thing) if name in STARTERS}
        if module_of(thing).startswith("tests."):
            for code, scope in codes_of(thing):
                found |= {STARTERS[name] for name in code.co_names if name in STARTERS}
                waiting += [scope[name] for name in code.co_names if name in scope]
    return frozenset(found)


def names_of(thing: Any) -> Iterator[str]:
    """A thing's full name, and those of the packages it is from."""
    name = module_of(thing)
    if not isinstance(thing, ModuleType):
        yield f"{name}.{getattr(thing, '__qualname__', '')}"
    while name:
        yield name
        name = name.rpartition(".")[0]


def module_of(thing: Any) -> str:
    """The module that a thing is, or is from."""
    return str(getattr(thing, "__name__" if isinstance(thing, ModuleType) else "__module__", ""))


def codes_of(thing: Any) -> Iterator[tuple[CodeType, dict[str, Any]]]:
    """The code of a function, or of a class's methods, each with its module's names."""
    if isinstance(thing, type):
        for each in vars(thing).values():
            yield from codes_of(each)
    function = inspect.unwrap(getattr(thing, "fget", thing) or thing)  # of a property
    if isinstance(function, FunctionType):
        for code in nested(function.__code__):
            yield code, function.__globals__


def nested(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


class Watch:
    """Sees what the running test starts in the main thread."""

    def __init__(self) -> None:
        self._started: set[str] = set()
        self._steps = 0
        self._is_counting = False
        sys.addaudithook(self._see)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or threading.current_thread() is not threading.main_thread():
            return
        program = str(arguments[0]) if arguments else ""
        if program.rpartition("/")[2] not in HARMLESS:
            self._started.add(EVENTS[event])

    def _count(self, *_: object) -> None:
        self._steps += threading.current_thread() is threading.main_thread()

    def begin(self) -> None:
        """A new test."""
        self._started.clear()
        self._steps = 0
        if not self._is_counting and "torch" in sys.modules:
            from torch.optim.optimizer import register_optimizer_step_post_hook

            register_optimizer_step_post_hook(self._count)
            self._is_counting = True

    def started(self) -> set[str]:
        """The marks of what was started since the test began."""
        return self._started | ({"training"} if self._steps > FEW_STEPS else set())
