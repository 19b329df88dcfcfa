"""How kernels are compiled: by numba, without Python's lock, kept on disk where they can be."""

import hashlib
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

# Sums may be reordered, so that they use vectors, and a product and a sum may be rounded once.
# Infinities and NaN keep their meaning.
_FAST_MATH = frozenset({"contract", "reassoc"})


def jit(function: Callable[..., Any]) -> Any:
    """The function, compiled at its first call.

    Machine code is kept beside the module, or in the user's cache, or nowhere if neither can be
    written to. Checks of types that wrap the function are left out: they are not Python that numba
    compiles.
    """
    plain = inspect.unwrap(function)
    # It names the function's files in the cache. Numba itself notices no change of another file.
    plain.__qualname__ = f"{plain.__name__}_{_revision()}"
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(_FAST_MATH)}
    try:
        return numba.njit(cache=True, **options)(plain)
    except RuntimeError:  # no folder for the cache
        return numba.njit(**options)(plain)


@cache
def _revision() -> str:
    """Of the modules with compiled functions, which call each other."""
    texts = [one.read_bytes() for one in sorted(Path(__file__).parent.glob("*.py"))]
    compiled = b"".join(text for text in texts if b"\n@jit\n" in text)
    return hashlib.sha256(compiled).hexdigest()[:12]
