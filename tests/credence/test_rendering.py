"""What is printed for people: what fits, and what is whole."""

from typing import Any

import pytest
from rich.console import Console

from credence import rendering
from credence.digits import digits
from credence.strips import CELLS, strips
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


def test_classes_have_a_table_thresholds_and_confusion(monkeypatch: pytest.MonkeyPatch) -> None:
    each = {"recall": 0.5, "precision": None, "average_precision": 0.25, "auroc": 0.75}
    metrics = {
        "accuracy": 0.9, "balanced_accuracy": 0.7, "average_precision": 0.25, "auroc": 0.75,
        "by_class": [{"class": False, "rows": 90, **each}, {"class": True, "rows": 10, **each}],
        "confusion": {"classes": [False, True], "counts": [[81, 9], [5, 5]]},
        "positive": True,
        "thresholds": [{"threshold": 0.5, "recall": 0.5, "precision": 0.357, "share": 0.14}],
    }  # fmt: skip
    variant = {"prune": 0.0, "num_weights": 1, "bytes": 1, "metrics": metrics}
    rows = [line.split() for line in printed(monkeypatch, 80, variants=[variant])]
    assert ["true", "10", "0.5", "0.25", "0.75"] in rows
    assert ["0.5", "0.5", "0.357", "0.14"] in rows
    assert rows[-2:] == [["false", "81", "9"], ["true", "5", "5"]]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (-346_512.3, "-346,512"), (9_994_999.0, "9,994,999"), (12_345_678.0, "1.235e+07"),
        (9999.6, "10,000"), (2020.0, "2020"), (1234.5678, "1235"), (0.00012345, "0.0001234"),
        (0.000012345, "1.234e-05"), (0.1, "0.1"), (0.0, "0"), (float("nan"), "nan"),
        (float("-inf"), "-inf"),
    ],
)  # fmt: skip
def test_a_price_has_no_exponent(value: float, written: str) -> None:
    assert digits(value) == written


def test_strips_of_all_rows_are_drawn_on_the_axis_of_the_usual_ones() -> None:
    axis, (first, second, unlike) = strips(
        [0.0, 11.5, -50.0], [5.0, 17.0, 11.5], [10.0, 23.0, 90.0], [False, False, True]
    )
    assert axis == "0" + " " * (CELLS - 3) + "23"
    assert first == "─" * 5 + "●" + "─" * 5 + " " * 13
    assert second == " " * 12 + "─" * 5 + "●" + "─" * 6
    assert unlike == "‹" + "─" * 11 + "●" + "─" * 10 + "›"
    assert strips([None], [0.0], [1.0], [False]) == ("", [""])  # no bounds, no strip
