"""Settings by dotted paths, as the command line's `--set` names them."""

from collections.abc import Collection, Mapping
from typing import Any

from core.database.schema import Json


def flatten(values: Json, prefix: str = "", whole: Collection[str] = ()) -> Json:
    """{"kl": {"weight": 1}} → {"kl.weight": 1}

    Args:
        whole: paths whose objects are values, not settings below them.
    """
    flat: Json = {}
    for name, value in values.items():
        path = f"{prefix}{name}"
        is_value = not isinstance(value, dict) or path in whole
        flat |= {path: value} if is_value else flatten(value, f"{path}.", whole)
    return flat


def nest(flat: Mapping[str, Any]) -> Json:
    """{"kl.weight": 1} → {"kl": {"weight": 1}}"""
    nested: Json = {}
    for path, value in flat.items():
        *parents, last = path.split(".")
        inner = nested
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = value
    return nested
