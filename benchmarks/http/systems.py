"""The measured servers: their commands, and the form of their requests and responses."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.http.connection import request_bytes
from benchmarks.http.predictor import ARTIFACT, BATCH_SECONDS, MAX_BATCH, SAMPLES
from benchmarks.http.process import free_ports
from benchmarks.peers import environments
from core.release import release

MODEL, INPUTS = "digits", 784
ROWS = 16  # different requests, sent in turn


@dataclass(frozen=True)
class Place:
    """Paths for a server: Credence's data, the artifact in it, the server's own folder."""

    data_dir: Path
    artifact: Path
    folder: Path


@dataclass(frozen=True)
class Launch:
    command: list[str]
    environment: dict[str, str]
    port: int


@dataclass(frozen=True)
class System:
    """A server of single rows.

    Args:
        environment: the name of its virtual environment; None for this project's.
        read: returns the mean and the computing time in ms of a response.
    """

    name: str
    environment: str | None
    launch: Callable[[str, Place], Launch]
    path: str
    body: Callable[[list[float]], dict[str, Any]]
    read: Callable[[Any], tuple[list[float], float]]

    @property
    def python(self) -> str:
        """Raises `NotInstalled`."""
        own = self.environment is None
        return sys.executable if own else str(environments.python(str(self.environment)))

    @property
    def version(self) -> str:
        if self.environment is None:
            return release() if self.name == "Credence" else version(self.name.lower())
        return environments.pinned(self.environment)

    def requests(self) -> list[bytes]:
        """Requests with the same rows for all systems."""
        rows = np.random.default_rng(0).normal(size=(ROWS, INPUTS)).round(4).tolist()
        return [request_bytes(self.path, json.dumps(self.body(row)).encode()) for row in rows]


def _credence(python: str, place: Place) -> Launch:
    (port,) = free_ports(1)
    command = [python, "-m", "credence", "api", "--port", str(port)]
    environment = {"CREDENCE_THREADS": "1", "CREDENCE_LOG_LEVEL": "warning"}
    return Launch([*command, "--data-dir", str(place.data_dir)], environment, port)


def _module(name: str) -> Callable[[str, Place], Launch]:
    """Launch a module of this package as a server; its argument is the port."""

    def launch(python: str, place: Place) -> Launch:
        (port,) = free_ports(1)
        command = [python, "-m", f"benchmarks.http.{name}", str(port)]
        return Launch(command, {ARTIFACT: str(place.artifact)}, port)

    return launch


def _bentoml(python: str, place: Place) -> Launch:
    (port,) = free_ports(1)
    service = "benchmarks.http.bentoml_app:Service"
    command = [python, "-m", "bentoml", "serve", service, "--host", "127.0.0.1"]
    environment = {
        ARTIFACT: str(place.artifact),
        "BENTOML_HOME": str(place.folder),
        "BENTOML_DO_NOT_TRACK": "true",
    }
    return Launch([*command, "--port", str(port)], environment, port)


def _mlserver(python: str, place: Place) -> Launch:
    """MLServer reads its settings from a folder."""
    http, grpc, metrics = free_ports(3)
    settings = {
        "host": "127.0.0.1",
        "http_port": http,
        "grpc_port": grpc,
        "metrics_port": metrics,
        "parallel_workers": 0,
        "debug": False,
    }
    model = {
        "name": MODEL,
        "implementation": "benchmarks.http.mlserver_app.Model",
        "max_batch_size": MAX_BATCH,
        "max_batch_time": BATCH_SECONDS,
    }
    (place.folder / "settings.json").write_text(json.dumps(settings))
    (place.folder / "model-settings.json").write_text(json.dumps(model))
    start = "from mlserver.cli import main; main()"
    environment = {ARTIFACT: str(place.artifact)}
    return Launch([python, "-c", start, "start", str(place.folder)], environment, http)


def _credence_body(row: list[float]) -> dict[str, Any]:
    return {"model": MODEL, "inputs": {"x": [row]}, "samples": SAMPLES}


def _plain_body(row: list[float]) -> dict[str, Any]:
    return {"x": [row]}


def _v2_body(row: list[float]) -> dict[str, Any]:
    tensor = {"name": "x", "shape": [1, INPUTS], "datatype": "FP32", "data": row}
    return {"inputs": [tensor]}


def _read_credence(response: Any) -> tuple[list[float], float]:
    return response["mean"][0], response["timings_ms"]["compute"]


def _read_plain(response: Any) -> tuple[list[float], float]:
    response = response[0] if isinstance(response, list) else response
    return response["mean"], response["compute_ms"]


def _read_v2(response: Any) -> tuple[list[float], float]:
    outputs = {output["name"]: output["data"] for output in response["outputs"]}
    return outputs["mean"], outputs["compute_ms"][0]


_V2_PATH = f"/v2/models/{MODEL}/infer"
SYSTEMS = {
    system.name: system
    for system in (
        System("Credence", None, _credence, "/predict", _credence_body, _read_credence),
        System("FastAPI", None, _module("fastapi_app"), "/predict", _plain_body, _read_plain),
        System(
            "LitServe", "litserve", _module("litserve_app"), "/predict", _plain_body, _read_plain
        ),
        System("BentoML", "bentoml", _bentoml, "/predict", _plain_body, _read_plain),
        System("MLServer", "mlserver", _mlserver, _V2_PATH, _v2_body, _read_v2),
    )
}
