"""Every kind of network through the whole service, on images beside a number."""

from pathlib import Path

import numpy as np
import pytest

from credence.client import Client
from credence.exceptions import CredenceAPIError


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bright or dark squares of 6×6, whose label they are."""
    random, path = np.random.default_rng(0), tmp_path_factory.mktemp("images") / "squares.npz"
    bright = random.integers(0, 2, 80)
    pixels = random.normal(size=(80, 6, 6)) + bright[:, None, None]
    np.savez(path, image=pixels.astype(np.float32), size=random.normal(size=80), bright=bright)
    return path


@pytest.mark.parametrize("method", ["bbb", "mc_dropout"])
@pytest.mark.parametrize("kind", ["mlp", "cnn", "rnn", "lstm", "gru"])
def test_a_kind_is_trained_and_answers(
    client: Client, images: Path, kind: str, method: str
) -> None:
    own = {"channels": [4]} if kind == "cnn" else {}
    request = {
        "model": f"{kind}-{method.replace('_', '-')}",
        "dataset": client.upload(images)["id"],
        "target": "bright",
        "task": "classification",
        "network": {"kind": kind, "hidden": [8], **own},
        "method": {"kind": method},
        "training": {"epochs": 4},
    }
    job = client.wait(client.submit_train(request)["id"], poll_seconds=0.05)
    assert job["status"] == "succeeded", job["error"]
    version = client.version(request["model"], 1)
    assert version["network"]["kind"] == kind
    row = {"image": np.ones((6, 6)).tolist(), "size": 0.0}
    answer = client.submit_predict({"model": request["model"], "inputs": [row, row], "samples": 20})
    assert answer["mean"][0] == pytest.approx(answer["mean"][1])
    assert sum(answer["probabilities"][0]) == pytest.approx(1)
    assert answer["sampler"] == ("sobol" if (kind, method) == ("mlp", "bbb") else "monte_carlo")


def test_a_kind_that_cannot_read_the_features_is_refused(client: Client, images: Path) -> None:
    request = {
        "model": "numbers",
        "dataset": client.upload(images)["id"],
        "target": "bright",
        "features": ["size"],
        "network": {"kind": "lstm"},
    }
    with pytest.raises(CredenceAPIError, match="reads one tensor per row"):
        client.submit_train(request)
