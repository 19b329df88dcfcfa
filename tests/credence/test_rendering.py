"""What is printed for people: what fits, and what is whole."""

from typing import Any

import pytest
from rich.console import Console

from credence import rendering
from credence.types import Version

SCORES = {
    "log_likelihood": -2.565, "rmse": 22.93, "mae": 2.193, "crps": 1.607,
    "coverage": {"0.9": 0.8333}, "conformal_coverage": {"0.9": 0.9333},
}  # fmt: skip


def printed(monkeypatch: pytest.MonkeyPatch, width: int, **told: Any) -> list[str]:
    """A version in a terminal of this width."""
    variant = {"prune": 0.95, "num_weights": 12_345, "bytes": 123_456, "metrics": SCORES}
    version: Any = {
        "model": "m", "version": 1, "aliases": [], "task": "regression", "target": "y",
        "features": [], "variants": [variant], **told,
    }  # fmt: skip
    console = Console(width=width, record=True, quiet=False)
    monkeypatch.setattr(rendering, "output", console)
    shown: Version = version
    rendering.print_version(shown)
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert width < 80 or max(map(len, lines)) <= width
    return lines


def test_scores_fit_into_a_terminal_and_numbers_are_never_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = printed(monkeypatch, 80)
    assert len(lines) == 4  # what it is, two of heads, a variant
    numbers = ["95%", "12345", "123456", "-2.565", "22.93", "2.193", "1.607", "0.8333", "0.9333"]
    assert lines[-1].split() == numbers
    assert printed(monkeypatch, 30)[-1].split() == numbers
