"""How much memory an object holds, with all that only it refers to."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from torch import Tensor

_LEAVES = (str, bytes, bytearray, int, float, complex, bool, type(None))
_SHARED = (type, ModuleType, FunctionType, MethodType)  # of the program, not of the object


def held_bytes(root: object) -> int:
    """The bytes of an object and of the objects in it, each counted once.

    Containers, attributes, arrays and tensors are followed; classes, modules and functions are not.
    A lower bound: memory that a library keeps without an object is not seen.
    """
    seen, total, waiting = set[int](), 0, [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, _SHARED):
            continue
        seen.add(id(value))
        total += _own_bytes(value)
        if not isinstance(value, _LEAVES):
            waiting.extend(_parts(value))
    return total


def _own_bytes(value: object) -> int:
    if isinstance(value, Tensor):
        return value.nbytes + sys.getsizeof(value)
    return sys.getsizeof(value)


def _parts(value: Any) -> Iterator[object]:
    match value:
        case Mapping():
            yield from list(value.keys())  # copies: another thread may fill a cache
            yield from list(value.values())
        case list() | tuple() | set() | frozenset():
            yield from value
        case np.ndarray() if value.base is not None:
            yield value.base
        case Tensor() | np.ndarray():
            return
        case _:
            if is_dataclass(value) and not hasattr(value, "__dict__"):
                yield from (getattr(value, one.name) for one in fields(value))
            yield from list(getattr(value, "__dict__", {}).values())
