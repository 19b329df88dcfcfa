"""Checks the shapes of a call at its 1st, 2nd, 3rd, 5th, 9th, … time in a test.

jaxtyping's check of a call costs more than most functions of `models` take, and a training makes
the same call thousands of times. Calls are the same if function, types and shapes of the arguments
are. Every other one runs unchecked: what is new is checked at once, what changes in the course of
a test soon.
"""

from collections.abc import Callable
from functools import partial, wraps
from inspect import isfunction
from itertools import count
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch

Decorator = Callable[..., Any]
_tests = count(1)
ARRAYS = (torch.Tensor, np.ndarray)


class Calls:
    """Counts calls of a function by form: types of the arguments, shapes of arrays."""

    current_test = 0

    def __init__(self) -> None:
        self._test = 0
        self._counts: dict[object, int] = {}

    def next_is_checked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether this call is the first, the second, or one after a power of two."""
        if self._test != Calls.current_test:
            self._test = Calls.current_test
            self._counts.clear()
        form = (*map(_form, args), *map(_form, kwargs.values()), *kwargs)
        earlier = self._counts.get(form, 0)
        self._counts[form] = earlier + 1
        return earlier & (earlier - 1) == 0


def _form(value: Any) -> object:
    return (value.shape, value.dtype) if isinstance(value, ARRAYS) else type(value)


def thinned(jaxtyped: Decorator) -> Decorator:
    """jaxtyping's decorator, with functions checked at some of their calls."""

    def decorate(thing: Any = None, *, typechecker: Any) -> Any:
        if thing is None:
            return partial(decorate, typechecker=typechecker)
        checked = jaxtyped(thing, typechecker=typechecker)
        return _sometimes(thing, checked) if isfunction(thing) else checked

    return decorate


def _sometimes(function: Decorator, checked: Decorator) -> Decorator:
    calls = Calls()

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return (checked if calls.next_is_checked(args, kwargs) else function)(*args, **kwargs)

    return call


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Before anything of `models` is imported and decorated."""
    jaxtyping.jaxtyped = thinned(jaxtyping.jaxtyped)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Count anew in each test."""
    Calls.current_test = next(_tests)
