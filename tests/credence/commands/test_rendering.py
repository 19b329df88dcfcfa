"""What is printed for people: what fits, what is whole, how long a job still takes."""

from typing import Any

import pytest
from rich.console import Console

from credence import rendering
from credence.progress import _note
from credence.types import Job, Version

SCORES = {
    "log_likelihood": -2.565, "rmse": 22.93, "mae": 2.193, "crps": 1.607,
    "coverage": {"0.9": 0.8333}, "conformal_coverage": {"0.9": 0.9333},
}  # fmt: skip


def printed(monkeypatch: pytest.MonkeyPatch, width: int) -> list[str]:
    """A version's table in a terminal of this width."""
    variant = {"prune": 0.95, "num_weights": 12_345, "bytes": 123_456, "metrics": SCORES}
    version: Any = {
        "model": "m", "version": 1, "aliases": [], "task": "regression", "target": "y",
        "features": [], "variants": [variant],
    }  # fmt: skip
    console = Console(width=width, record=True, quiet=False)
    monkeypatch.setattr(rendering, "output", console)
    shown: Version = version
    rendering.print_version(shown)
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_scores_fit_into_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, 80)
    assert max(map(len, lines)) <= 80
    assert len(lines) == 4  # what it is, two of heads, a variant
    numbers = ["95%", "12345", "123456", "-2.565", "22.93", "2.193", "1.607", "0.8333", "0.9333"]
    assert lines[-1].split() == numbers


def test_numbers_are_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, 30)[-1].split() == printed(monkeypatch, 80)[-1].split()


@pytest.mark.parametrize(
    ("stage", "fraction", "seconds", "told"),
    [
        ("fit", 0.01, 22133.0, "fit: epoch 7/536"),
        ("prune-0.95", 0.5, 240.0, "95% pruned: epoch 7/536 · about 4 min left"),
        ("refit-fit", 0.5, 41.2, "all rows, fit: epoch 7/536 · about 41 s left"),
        ("chains", 0.5, 9000.0, "sampling weights: epoch 7/536 · about 2.5 h left"),
    ],
)
def test_progress_says_what_is_done_and_how_long(
    stage: str, fraction: float, seconds: float, told: str
) -> None:
    progress = {"stage": stage, "epoch": 7, "epochs": 536}
    progress |= {"fraction": fraction, "eta_seconds": seconds}
    job: Any = {"status": "running", "progress": progress, "metrics": {}}
    running: Job = job
    assert _note(running) == told
