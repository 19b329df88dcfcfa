"""The benchmark of the standard tables: its settings, and a run that is interrupted."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import results, uci

SETTINGS = {"training": {"epochs": 2, "batch_size": 16}}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a generated table of 60 rows and three splits."""
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(results, "machine", lambda: {"commit": "same"})
    random = np.random.default_rng(0)
    x = random.normal(size=60)
    lines = [f"{a},{2 * a + 0.1 * b}" for a, b in zip(x, random.normal(size=60), strict=True)]
    (tmp_path / "uci").mkdir()
    (tmp_path / "uci" / "line.csv").write_text("\n".join(["x0,y", *lines]) + "\n")
    splits = [list(range(start, start + 6)) for start in (0, 6, 12)]
    (tmp_path / "uci" / "line.splits.json").write_text(json.dumps(splits))
    return tmp_path


def test_the_published_network_is_prescribed_and_the_recipes_is_not() -> None:
    training = {"x0": np.arange(50.0), "y": np.arange(50.0)}
    published, own = (uci.Recipe(kind, 3, SETTINGS).configure(training) for kind in uci.NETWORKS)
    assert published.network.hidden == (50,)
    assert (published.training.seed, published.training.epochs) == (3, 2)
    assert published.training.validation_fraction == own.training.validation_fraction == 0.01
    assert published.pruning == own.pruning == ()
    large = {name: np.arange(20_001.0) for name in ("x0", "y")}
    assert uci.Recipe("published", 0, {}).configure(large).network.hidden == (100,)


def test_results_of_different_settings_have_different_files() -> None:
    recipes = [
        uci.Recipe(kind, 0, settings) for kind in uci.NETWORKS for settings in ({}, SETTINGS)
    ]
    files = [recipe.file("line") for recipe in recipes]
    assert files[0] == "uci-line-0"  # as before there was a choice
    assert len(set(files)) == 4


def test_an_interrupted_run_resumes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, measured = uci.Recipe("recipe", 0, SETTINGS), list[int]()

    def count(_columns: Any, test: np.ndarray, _recipe: uci.Recipe) -> dict[str, Any]:
        measured.append(int(test[0]))
        return {"log_likelihood": -float(test[0])}

    monkeypatch.setattr(uci, "measure", count)
    uci.run(root, "line", 2, recipe)
    uci.run(root, "line", 20, recipe)
    assert measured == [0, 6, 12]
    assert [one["log_likelihood"] for one in uci.load("line", recipe)] == [0, -6, -12]


@pytest.mark.training
def test_a_split_is_trained_and_scored(root: Path) -> None:
    recipe = uci.Recipe("published", 0, SETTINGS)
    uci.run(root, "line", 1, recipe)
    (scores,) = uci.load("line", recipe)
    assert scores["rows"] == 6
    told = uci.table({recipe: {"line": [scores | {"conformal_coverage": {"0.9": 0.9}}]}})
    assert told.splitlines()[-1].startswith(
        f"| line | published | 1 | **{scores['log_likelihood']:.3f}**"
    )
