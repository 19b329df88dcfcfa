"""The benchmark of ordinary tables: its scores, its summary, and a run on two generated tables."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.metrics import accuracy_score, log_loss, mean_pinball_loss

from benchmarks import tables
from benchmarks.table_scores import PROBABILITIES, class_scores, number_scores
from benchmarks.table_summary import beside, overall, summary
from benchmarks.tables import Asked, Table, read_lines, report, run

TRAINING = {"epochs": 60, "batch_size": 32, "learning_rate": 0.01}
QUICK = {"network": {"hidden": [8]}, "training": TRAINING, "pruning": []}
PEERS = [
    {"table": "line", "method": "CatBoost quantiles", "crps": 0.5},
    {"table": "line", "method": "CatBoost Gaussian", "crps": 0.4},
    {"table": "line", "method": "ridge, residuals", "crps": 0.2},
    {"table": "side", "method": "CatBoost", "log_loss": 0.5},
    {"table": "side", "method": "logistic regression", "log_loss": 0.8},
]


def test_the_crps_is_twice_the_mean_pinball_loss() -> None:
    random = np.random.default_rng(0)
    truth, mean = random.normal(size=200), random.normal(size=200)
    quantiles = mean[:, None] + norm.ppf(PROBABILITIES)
    found = number_scores(truth, quantiles[:, ::-1], mean)  # any order
    losses = [
        mean_pinball_loss(truth, quantiles[:, i], alpha=p) for i, p in enumerate(PROBABILITIES)
    ]
    assert found["crps"] == pytest.approx(2 * np.mean(losses))
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((truth - mean) ** 2)))
    assert found["width90"] == pytest.approx(2 * 1.6449, rel=1e-4)
    covered = np.abs(truth - mean) <= 1.6449
    assert found["cover90"] == covered.mean()
    lowest = np.argsort(mean)[:67]
    assert found["thirds"][0] == round(covered[lowest].mean(), 3)
    assert found["impossible"] == 0.0  # there are negative values


def test_intervals_that_begin_below_the_least_value_are_impossible() -> None:
    truth = np.array([0.0, 1.0, 2.0, 3.0])
    quantiles = truth[:, None] + np.linspace(-1, 1, 11)
    assert number_scores(truth, quantiles, truth)["impossible"] == 0.25


def test_class_scores_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(1)
    probabilities, classes = random.dirichlet(np.ones(3), 100), ["a", "b", "c"]
    truth = random.choice(classes, 100).tolist()
    found = class_scores(truth, probabilities, classes)
    assert found["log_loss"] == pytest.approx(log_loss(truth, probabilities))
    labels = np.array(classes)[probabilities.argmax(1)]
    assert found["accuracy"] == accuracy_score(truth, labels)
    confidence, right = probabilities.max(1), labels == truth
    edges = np.linspace(0, 1, 16)
    ece = 0.0
    for low, high in pairwise(edges):
        rows = (confidence >= low) & (confidence < high)
        if rows.any():
            ece += rows.mean() * abs(right[rows].mean() - confidence[rows].mean())
    assert found["ece"] == pytest.approx(ece)
    with pytest.raises(ValueError, match=r"\['d'\] are unknown"):
        class_scores(["d"], probabilities[:1], classes)


def line(table: str, kind: str = "credible", **scores: Any) -> dict[str, Any]:
    return {"table": table, "kind": kind, "seconds": 9.0, **scores}


def test_the_summary_is_made_of_ratios() -> None:
    good = {"cover90": 0.9, "thirds": [0.87, 0.9, 0.93], "impossible": 0.0}
    bad = {"cover90": 0.9, "thirds": [0.8, 0.95, 0.95], "impossible": 0.5}
    found = beside(
        [
            line("line", crps=0.36, **good),
            line("line", "conformal", crps=0.38, **bad),
            line("side", log_loss=0.55, accuracy=0.7),
            {"table": "third", "error": "no"},
        ],
        PEERS,
    )
    assert [one.ratio(one.best) for one in found] == pytest.approx([0.9, 1.1])
    assert overall(found) == (
        "better than CatBoost's best on 1 of 2 tables; "
        f"geometric mean {math.sqrt(0.9 * 1.1):.3f}; worst 1.100 (side); "
        "better than linear on 1 of 2; credible 90 % intervals within the aim on 1 of 1; "
        "conformal 90 % intervals within the aim on 0 of 1"
    )
    rows = summary(found).splitlines()
    assert rows[2].startswith("| side | 0.5500 | 1.100 |")  # the worst first
    assert "| 87.0 90.0 93.0 |" in rows[3]


def write_folder(folder: Path) -> None:
    random = np.random.default_rng(0)
    told = {}
    for name, task in (("line", "regression"), ("side", "classification"), ("gone", "regression")):
        told[name] = {"target": "y", "task": task, "what": "generated"}
        for side, rows in (("train", 120), ("test", 40)):
            x, kind = random.normal(size=rows), random.choice(["a", "b"], rows)
            frame = pd.DataFrame({"x": x, "kind": kind})
            frame.loc[::9, "x"] = np.nan
            frame["y"] = 3 * x if task == "regression" else np.where(x > 0, "high", "low")
            if name != "gone":
                frame.to_csv(folder / f"{name}.{side}.csv.gz", index=False)
    (folder / "tables.json").write_text(json.dumps(told))
    (folder / "peers.jsonl").write_text("\n".join(map(json.dumps, PEERS)))


@pytest.mark.training
@pytest.mark.process
def test_a_run_measures_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gone` has no files: its error is kept, and it is tried again."""
    write_folder(tmp_path)
    chosen, file = list(tables.tables(tmp_path)), tmp_path / "out" / "results.jsonl"
    run(chosen, Asked(QUICK), file, None)
    lines = read_lines(file)
    assert [(x["table"], x.get("kind")) for x in lines] == [
        ("line", "credible"), ("line", "conformal"), ("side", "credible"), ("gone", None),
    ]  # fmt: skip
    assert lines[0]["cover90"] > 0.5
    assert lines[2]["accuracy"] > 0.7
    told = report(chosen, file, tmp_path / "peers.jsonl")
    assert "of 2 tables" in told
    assert "gone failed: " in told
    again: list[str] = []

    def count(_client: Any, table: Table, _asked: Asked) -> list[dict[str, Any]]:
        again.append(table.name)
        return [line(table.name, crps=1.0)]

    monkeypatch.setattr(tables, "measure", count)
    monkeypatch.setattr(tables, "_own_service", lambda _: None)
    run(chosen, Asked(QUICK), file, None)
    run(chosen, Asked(QUICK), file, None)
    assert again == ["gone"]
    assert "failed" not in report(chosen, file, tmp_path / "none")
    with pytest.raises(ValueError, match="other settings"):
        run(chosen, Asked({}), file, None)


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    write_folder(tmp_path)
    assert [table.name for table in tables.tables(tmp_path, ["side"])] == ["side"]
    with pytest.raises(ValueError, match=r"no tables \['new'\]; it has line, side, gone"):
        list(tables.tables(tmp_path, ["new"]))
