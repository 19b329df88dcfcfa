"""Every method and every kind of network through the whole service: trained, then answered."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credence.client import Client

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
def test_a_kind_of_network_is_trained_and_answers(
    client: Client, images: Path, kind: str, method: str
) -> None:
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
