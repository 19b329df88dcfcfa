"""What users do all day: upload, train, predict."""

import csv
import io
from typing import Any

import httpx
import numpy as np

from tests.integration.stack import wait_until

FINAL = ("succeeded", "failed", "cancelled")
ROWS = 400


def upload(http: httpx.Client) -> str:
    """y = 3 x0 − x1 with noise; the id of the data set."""
    random = np.random.default_rng(0)
    x = random.normal(size=(ROWS, 2))
    y = 3 * x[:, 0] - x[:, 1] + random.normal(0, 0.1, ROWS)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["x0", "x1", "y"])
    writer.writerows([*row, target] for row, target in zip(x.tolist(), y.tolist(), strict=True))
    answer = http.post(
        "/datasets",
        params={"name": "line"},
        content=text.getvalue(),
        headers={"Content-Type": "text/csv"},
    )
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["id"])


def train(http: httpx.Client, dataset: str, model: str, epochs: int = 5, **more: Any) -> str:
    """Queue a small training job; its id."""
    training = {"epochs": epochs, "patience": epochs, "refit": False} | more
    body = {
        "model": model,
        "dataset": dataset,
        "target": "y",
        "network": {"hidden": [8]},
        "training": training,
        "pruning": [],
    }
    answer = http.post("/train", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def wait(http: httpx.Client, job: str, seconds: float = 180, *statuses: str) -> dict[str, Any]:
    """The job once it has ended, or has one of the statuses; outages on the way are waited for."""
    wanted = statuses or FINAL

    def arrived() -> dict[str, Any] | None:
        try:
            answer = http.get(f"/jobs/{job}")
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success and answer.json()["status"] in wanted else None

    found: dict[str, Any] = wait_until(arrived, seconds, f"job {job} to be one of {wanted}")
    return found


def predict(http: httpx.Client, model: str, **options: Any) -> dict[str, Any]:
    """Two rows, predicted."""
    body = {"model": model, "inputs": [{"x0": 1.0, "x1": 0.5}, {"x0": -1.0, "x1": 2.0}], **options}
    answer = http.post("/predict", json=body)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result
