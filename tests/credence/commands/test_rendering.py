"""What is printed for people: what fits, what is whole, how long a job still takes."""

from typing import Any

import pytest
from rich.console import Console

from credence import rendering
from credence.progress import note_on
from credence.types import Job, Version

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
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_scores_fit_into_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, 80)
    assert max(map(len, lines)) <= 80
    assert len(lines) == 4  # what it is, two of heads, a variant
    numbers = ["95%", "12345", "123456", "-2.565", "22.93", "2.193", "1.607", "0.8333", "0.9333"]
    assert lines[-1].split() == numbers


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
    lines = printed(monkeypatch, 80, variants=[variant])
    assert max(map(len, lines)) <= 80
    by_class = lines.index("By class, without pruning")
    assert lines[by_class + 4].split() == ["true", "10", "0.5", "0.25", "0.75"]
    assert lines[by_class + 5].split() == ["all", "0.7", "0.25", "0.75"]
    flagged = lines.index("Flagged as true from a threshold on")
    assert lines[flagged + 2].split() == ["0.5", "0.5", "0.357", "0.14"]
    assert [line.split() for line in lines[lines.index("Confusion") + 2 :]] == [
        ["false", "81", "9"],
        ["true", "5", "5"],
    ]


def test_numbers_are_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, 30)[-1].split() == printed(monkeypatch, 80)[-1].split()


def test_simple_methods_stand_below_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = {"rmse": 25.0, "mae": 3.5, "crps": 2.25, "coverage": {"0.9": 0.9}, "rows": 9}
    trees = {"kind": "boosted_trees", "metrics": metrics, "seconds": 1.25, "rows": 50_000}
    lines = printed(monkeypatch, 80, baselines=[trees], notes=["boosted trees: [better]"])
    assert max(map(len, lines)) <= 80
    title = lines.index("Beside it, on the same rows")
    assert lines[title + 3].split() == ["this", "model", "22.93", "2.193", "1.607", "0.8333"]
    assert lines[title + 4].split() == [
        "boosted",
        "trees",
        "50000",
        "1.25",
        "25",
        "3.5",
        "2.25",
        "0.9",
    ]
    assert lines[-2:] == ["Notes", "- boosted trees: [better]"]


def test_classical_methods_stand_below_a_forecaster(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 80 characters, and with the model's scores at the origins of each method."""
    own = {"crps": 2.5, "coverage": {"0.9": 0.8}, "origins": 37}
    baselines = {
        "seasonal_naive": {
            "crps": 5.0, "coverage": {"0.9": 1.0}, "origins": 37,
            "verdict": "better", "advantage": 2.5, "advantage_error": 0.5,
        },
        "auto_ets": {
            "crps": 2.0, "coverage": {"0.9": 0.9}, "origins": 13,
            "this_model": own | {"crps": 2.25}, "verdict": "worse",
            "advantage": -0.25, "advantage_error": 0.1,
        },
        "auto_arima": {
            "crps": 2.0, "coverage": {"0.9": 0.9}, "origins": 4, "this_model": own,
            "verdict": "no difference", "advantage": -0.5, "advantage_error": None,
        },
    }  # fmt: skip
    metrics = own | {"baselines": baselines}
    variant = {"prune": 0.0, "num_weights": 1, "bytes": 1, "metrics": metrics}
    lines = printed(monkeypatch, 80, variants=[variant])
    assert max(map(len, lines)) <= 80
    title = lines.index("Beside it, at the same held-out origins")
    assert [" ".join(line.split()) for line in lines[title + 3 : title + 6]] == [
        "seasonal naive 37 5 2.5 1 0.8 this model by 2.5 ± 0.5",
        "AutoETS 13 2 2.25 0.9 0.8 AutoETS by 0.25 ± 0.1",
        "AutoARIMA 4 2 2.5 0.9 0.8 neither, 0.5",
    ]
    old = {name: {"crps": one["crps"]} for name, one in baselines.items()}
    variant["metrics"] = own | {"baselines": old}
    assert "Beside it, at the same held-out origins" not in printed(
        monkeypatch, 80, variants=[variant]
    )


def test_candidates_are_printed_from_the_best_on(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = [
        {
            "name": name,
            "settings": {},
            "score": score,
            "standard_error": 0.2,
            "difference": score + 1,
            "difference_error": 0.1,
            "kept": score == -1,
        }
        for name, score in (("KL 0.05", -1.5), ("KL 1", -1.0))
    ]
    selection = {"candidates": candidates, "metric": "log_likelihood", "rows": 96, "note": "Near."}
    lines = printed(monkeypatch, 80, selection=selection)
    assert "What was tried, on 96 rows left out" in lines
    assert lines[-3].split() == ["KL", "1", "-1", "0.2", "0", "0.1", "yes"]
    assert lines[-2].split() == ["KL", "0.05", "-1.5", "0.2", "-0.5", "0.1", "no"]
    assert lines[-1] == "Near."


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
    assert note_on(running) == told
