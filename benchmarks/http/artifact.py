"""A stored model for the servers, trained through the service."""

import sys
import time
from pathlib import Path

import httpx
import numpy as np

from benchmarks.http.process import free_ports, running
from benchmarks.http.systems import INPUTS, MODEL
from credence.client import Client

HIDDEN = (400, 400)
ROWS, CLASSES = 200, 10
START_SECONDS = 60.0


def make(data_dir: Path, log: Path) -> Path:
    """Train on random rows for two epochs. Returns the artifact's directory.

    Speed does not depend on what the model learned.

    Raises:
        RuntimeError: if the service does not start or training fails.
    """
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "credence", "serve", "--port", str(port)]
    environment = {"CREDENCE_WORKER_METRICS_PORT": "0"}
    with running([*command, "--data-dir", str(data_dir)], environment, port, log):
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(url)
        with Client(url) as client:
            dataset = client.upload(_rows(data_dir.parent))
            job = client.wait(client.submit_train(_request(dataset["id"]))["id"])
    if job["status"] != "succeeded":
        raise RuntimeError(f"training for the benchmark {job['status']}: {job['error']}")
    return next((data_dir / "artifacts").rglob("manifest.json")).parent


def _request(dataset: str) -> dict[str, object]:
    return {
        "model": MODEL,
        "dataset": dataset,
        "target": "y",
        "task": "classification",
        "network": {"kind": "mlp", "hidden": HIDDEN},
        "training": {"epochs": 2},
        "pruning": [],
    }


def _rows(folder: Path) -> Path:
    random = np.random.default_rng(0)
    path = folder / "rows.npz"
    np.savez(path, x=random.normal(size=(ROWS, INPUTS)), y=np.arange(ROWS) % CLASSES)
    return path


def wait_until_ready(url: str, seconds: float = START_SECONDS) -> None:
    """Raise `RuntimeError` if the service is not ready in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"credence serve was not ready after {seconds:.0f} s")
