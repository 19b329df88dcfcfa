"""Estimators beside the service: the same weights of the same rows, and deployed models."""

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from credence.client import Client
from credence.estimators import BayesianRegressor
from tests.credence.running import environment
from tests.credence.test_estimators import QUICK, frame, target

pytestmark = pytest.mark.stack
SAME = {"epochs": 8, "learning_rate": 0.1, "batch_size": 64, "seed": 5}


def weights_in(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        names = [name for name in tar.getnames() if name.endswith(".safetensors")]
        return {name: tar.extractfile(name).read() for name in names}  # type: ignore[union-attr]


def fitted_as_by_the_service(
    client: Client, folder: Path, name: str, rows: pd.DataFrame, y: Any, **request: Any
) -> BayesianRegressor:
    """An estimator, once its weights are those of the service: same file, settings and seed."""
    rows.to_parquet(folder / "rows.parquet")
    dataset = client.upload(folder / "rows.parquet")["id"]
    request |= {"network": {"hidden": [8]}, "pruning": [0.5], "training": SAME}
    job = client.wait(client.submit_train({"model": name, "dataset": dataset, **request})["id"])
    assert job["status"] == "succeeded", job["error"]
    client.export_version(name, 1, folder / "trained.tar")
    X = rows.drop(columns=[*y, "w"], errors="ignore")
    truth = rows[y] if len(y) > 1 else rows[y[0]]
    ours = BayesianRegressor(**QUICK | {"pruning": [0.5]}, random_state=5)
    ours.fit(X, truth, rows.get("w"))
    ours.save(folder / "ours.tar")
    assert weights_in(folder / "ours.tar") == weights_in(folder / "trained.tar")
    return ours


def test_the_service_trains_the_same_and_serves_what_is_deployed(
    client: Client, tmp_path: Path
) -> None:
    rows = frame()[["size", "city", "new"]].assign(y=target(frame()), w=1.0 + np.arange(80) % 3)
    rows["city"] = rows["city"].astype(str)
    ours = fitted_as_by_the_service(
        client, tmp_path, "trained", rows, ["y"], target="y", weight="w"
    )
    X = rows.drop(columns=["y", "w"])
    version = ours.deploy(client, "deployed", alias="champion")
    assert version.description["target"] == "y"  # the name of the column given to `fit`
    asked = {"model": "deployed", "version": "champion", "inputs": X.to_dict("list")}
    told = client.submit_predict(asked)
    mean, std = ours.predict(X, return_std=True)
    assert told["mean"] == pytest.approx(mean, rel=1e-4, abs=1e-5)
    assert told["variance"]["total"] == pytest.approx(std**2, rel=1e-4)


def test_without_scikit_learn_the_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "sklearn.py").write_text("raise ModuleNotFoundError('none', name='sklearn')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import credence.estimators"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert "pip install scikit-learn" in done.stderr
