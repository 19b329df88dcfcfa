"""Each method and kind of network from the command line, and estimators beside the service."""

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

METHODS: dict[str, dict[str, Any]] = {
    "bbb": {},
    "map": {},
    "mle": {},
    "ensemble": {"members": 2},
    "mc_dropout": {},
    "swag": {"epochs": 3, "rank": 2},
    "laplace": {},
    "sgld": {"chains": 2, "draws": 4, "burn_in": 5, "thinning": 2},
    "csgld": {"chains": 2, "cycles": 2, "cycle_steps": 20, "draws": 2},
    "metropolis": {"chains": 2, "draws": 4, "burn_in": 5, "thinning": 2},
}
KEPT = {"map": 1, "mle": 1, "ensemble": 2, "sgld": 8, "csgld": 8, "metropolis": 8}

pytestmark = pytest.mark.stack


def trained(client: Client, **request: Any) -> Any:
    """The job of a short training."""
    request.setdefault("training", {"epochs": 3})
    job = client.wait(client.submit_train(request)["id"], poll_seconds=0.05)
    assert job["status"] == "succeeded", job["error"]
    return job


@pytest.mark.parametrize("kind", METHODS)
def test_a_method_is_trained_and_answers(client: Client, kind: str) -> None:
    x, name = np.random.default_rng(0).normal(size=60), f"with-{kind.replace('_', '-')}"
    columns = {"x": x.tolist(), "y": (3 * x + 1).tolist()}
    method = {"kind": kind, **METHODS[kind]}
    network = {"hidden": [4]}
    job = trained(
        client, model=name, data={"columns": columns}, target="y", method=method, network=network
    )
    assert job["request"]["method"]["kind"] == kind
    assert job["request"]["pruning"] == ([0.5, 0.75, 0.9, 0.95] if kind == "bbb" else [])
    asked = {"model": name, "inputs": [{"x": 0.5}], "samples": 20, "return_draws": True}
    answer = client.submit_predict(asked)
    assert answer["samples"] == KEPT.get(kind, 20)
    assert np.shape(answer["draws"]) == (answer["samples"], 1)
    assert answer["variance"]["total"][0] > 0
    assert (answer["mc_error"] is None) == (kind in {"map", "mle", "ensemble"})


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bright or dark squares of 6×6, whose label they are."""
    random, path = np.random.default_rng(0), tmp_path_factory.mktemp("images") / "squares.npz"
    bright = random.integers(0, 2, 80)
    pixels = random.normal(size=(80, 6, 6)) + bright[:, None, None]
    np.savez(path, image=pixels.astype(np.float32), size=random.normal(size=80), bright=bright)
    return path


@pytest.mark.parametrize(
    ("kind", "method"),
    [("mlp", "bbb"), ("cnn", "bbb"), ("rnn", "bbb"), ("lstm", "mc_dropout"), ("gru", "mc_dropout")],
)
def test_a_network_is_trained(client: Client, images: Path, kind: str, method: str) -> None:
    dataset = client.upload(images)["id"]
    network = {"kind": kind, "hidden": [8], **({"channels": [4]} if kind == "cnn" else {})}
    trained(
        client, model=kind, dataset=dataset, target="bright", task="classification",
        network=network, method={"kind": method},
    )  # fmt: skip
    assert client.version(kind, 1)["network"]["kind"] == kind
    row = {"image": np.ones((6, 6)).tolist(), "size": 0.0}
    answer = client.submit_predict({"model": kind, "inputs": [row, row], "samples": 20})
    assert answer["mean"][0] == pytest.approx(answer["mean"][1])
    assert sum(answer["probabilities"][0]) == pytest.approx(1)
    assert answer["sampler"] == ("sobol" if kind == "mlp" else "monte_carlo")


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


def test_the_service_trains_and_serves_the_same(client: Client, tmp_path: Path) -> None:
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
