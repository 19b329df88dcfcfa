"""Comparison of nested results up to rounding."""

from typing import Any

import pytest


def assert_close(found: Any, wanted: Any, ignored: tuple[str, ...] = ()) -> None:
    """Equal up to rounding, whatever the nesting, but for the ignored keys."""
    if isinstance(found, dict):
        assert found.keys() - ignored == wanted.keys() - ignored
        for name in found.keys() - ignored:
            assert_close(found[name], wanted[name], ignored)
    elif isinstance(found, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other, ignored)
    elif isinstance(found, float):
        assert found == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    else:
        assert found == wanted
