"""Every method through the whole service: trained by its worker, answered by its engine."""

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


@pytest.mark.parametrize("kind", METHODS)
def test_a_method_is_trained_and_answers(client: Client, kind: str) -> None:
    x = np.random.default_rng(0).normal(size=60)
    request = {
        "model": f"with-{kind.replace('_', '-')}",
        "data": {"columns": {"x": x.tolist(), "y": (3 * x + 1).tolist()}},
        "target": "y",
        "method": {"kind": kind, **METHODS[kind]},
        "network": {"hidden": [4]},
        "training": {"epochs": 3},
    }
    job = client.wait(client.submit_train(request)["id"], poll_seconds=0.05)
    assert job["status"] == "succeeded", job["error"]
    assert job["request"]["method"]["kind"] == kind
    assert job["request"]["pruning"] == ([0.5, 0.75, 0.9, 0.95] if kind == "bbb" else [])
    answer = client.submit_predict(
        {"model": request["model"], "inputs": [{"x": 0.5}], "samples": 20, "return_draws": True}
    )
    assert answer["samples"] == KEPT.get(kind, 20)
    assert np.shape(answer["draws"]) == (answer["samples"], 1)
    assert answer["variance"]["total"][0] > 0
    assert (answer["mc_error"] is None) == (kind in {"map", "mle", "ensemble"})
