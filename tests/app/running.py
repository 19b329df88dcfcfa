"""A real server in a thread, and real models behind it: trained, published, served."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn
from fastapi import FastAPI

from app.dependencies import Services
from app.main import create_app
from core.context import Context
from core.datasets.dataset import Dataset
from core.datasets.inputs import target_type
from core.jobs.specs import TrainSpec
from core.registry.registry import Version
from core.settings import load_settings
from credence.serving.agents import mount
from models.artifact.files import write_model
from models.config import FeatureConfig, MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import readings_of
from models.model import TrainedModel
from models.training.recipe import resolve
from models.training.train import train
from worker.baselines.adding import with_baselines

CLASSES = ("alder", "beech", "oak")

Change = Callable[[TrainedModel], TrainedModel]


def unchanged(model: TrainedModel) -> TrainedModel:
    """The model itself."""
    return model


@dataclass(frozen=True)
class Service:
    """A running service: its address, a client of it, and its inside."""

    url: str
    http: httpx.Client
    app: FastAPI

    @property
    def services(self) -> Services:
        return self.app.state.services

    @property
    def context(self) -> Context:
        return self.services.context

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.http.post(path, json=body, **options)

    def metric(self, name: str, **labels: str) -> float:
        """The value of a sample on /metrics; 0 if it is not there."""
        wanted = name + _labels(labels)
        for line in self.http.get("/metrics").text.splitlines():
            sample, _, value = line.rpartition(" ")
            if sample == wanted:
                return float(value)
        return 0.0


def answered(response: httpx.Response, status: int = 200) -> httpx.Response:
    """The response, after a check of its status."""
    assert response.status_code == status, f"{response.request}: {response.text}"
    return response


def refused_paths(response: httpx.Response) -> list[str]:
    """Where the errors of a 422 are."""
    return [error["path"] for error in answered(response, 422).json()["errors"]]


# Callers may wait, and work take long: on a busy machine the usual seconds refuse what a test means
# to be answered.
PATIENT: dict[str, Any] = {"max_queued_seconds": 600.0, "max_whole_seconds": 600.0}


@contextmanager
def serving(
    data_dir: Path,
    extend: Callable[[FastAPI], None] = lambda app: None,
    grace_seconds: int = 5,
    **overrides: Any,
) -> Iterator[Service]:
    """The application under uvicorn on a free port; `overrides` are settings, `extend` adds routes.

    Without overrides it is `PATIENT`.
    """
    api = create_app(load_settings(data_dir=data_dir, **PATIENT | overrides))
    extend(api)
    app = mount(api)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # as in `credence serve`: the application reads them
        timeout_graceful_shutdown=grace_seconds,
        timeout_keep_alive=600,  # httpx keeps a connection for 5 s, and is the one to close it
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the server did not start"
                time.sleep(0.01)
            # No idle connection is closed for being one too many: in another thread a request may
            # just have been given it.
            limits = httpx.Limits(max_connections=100, max_keepalive_connections=None)
            with httpx.Client(base_url=url, timeout=600, limits=limits) as client:
                yield Service(url, client, app)
        finally:
            server.should_exit = True
            thread.join(120)
        assert not thread.is_alive(), "the server did not stop"


def regression_columns(rows: int = 120) -> dict[str, list[Any]]:
    """A table with every simple type of column, missing values among them."""
    random = np.random.default_rng(0)
    size = random.uniform(-2, 2, rows)
    wood = random.choice(["ash", "oak"], rows)
    wet = random.random(rows) < 0.5
    noise = random.normal(0, 0.1, rows)
    price = 3 * size + (wood == "oak") + 0.5 * wet + noise
    days = [f"2026-01-{1 + i % 28:02d}T00:00:00Z" for i in range(rows)]
    return {
        "size": [None if i % 17 == 0 else float(v) for i, v in enumerate(size)],
        "wood": [None if i % 19 == 0 else str(v) for i, v in enumerate(wood)],
        "wet": [bool(v) for v in wet],
        "day": days,
        "price": [float(v) for v in price],
    }


def class_columns(rows: int = 120) -> dict[str, list[Any]]:
    """Three classes in a plane, and a 2 × 2 image that says the same."""
    random = np.random.default_rng(1)
    label = random.integers(0, 3, rows)
    x, y = random.normal(label, 0.3), random.normal(-label, 0.3)
    image = [[[float(a), 0.0], [0.0, float(b)]] for a, b in zip(x, y, strict=True)]
    return {"x": x.tolist(), "y": y.tolist(), "image": image, "tree": [CLASSES[i] for i in label]}


def publish(
    context: Context,
    model: str,
    columns: dict[str, list[Any]],
    *,
    target: str,
    features: Sequence[str] | None = None,
    alias: str | None = None,
    change: Change = unchanged,
) -> Version:
    """Train on the columns and publish, by the same steps as a worker's."""
    dataset, _ = context.datasets.add_columns(model, columns)
    types = {column.name: column.type for column in dataset.columns}
    chosen = (
        None if features is None else tuple(FeatureConfig(name=f, type=types[f]) for f in features)
    )
    config = ModelConfig(
        target=target,
        features=chosen,
        network=MLPConfig(hidden=(8,)),
        training=TrainingConfig(epochs=20, fine_tune_epochs=1),
        pruning=(0.5,),
    )
    return publish_as(context, model, dataset, config, alias=alias, change=change)


def publish_as(
    context: Context,
    model: str,
    dataset: Dataset,
    wanted: ModelConfig,
    *,
    alias: str | None = None,
    change: Change = unchanged,
) -> Version:
    """Train what `wanted` says, the rest as recommended, and publish it."""
    load = partial(context.datasets.columns, dataset.id)
    config = resolve(wanted, dataset.columns, dataset.rows, load)
    spec = TrainSpec(model=model, dataset=dataset.id, config=config, alias=alias)
    job = context.jobs.create(spec)
    return carry_out(context, job.id, change)


def carry_out(
    context: Context,
    job_id: str,
    change: Change = unchanged,
) -> Version:
    """Do a queued training job, as a worker does.

    Args:
        change: of the model before it is published.
    """
    spec = TrainSpec.model_validate(context.jobs.get(job_id).spec)
    claim = context.jobs.claim(job_id, "test", lease_seconds=3600)
    assert claim is not None
    profiles = {c.name: c for c in context.datasets.get(spec.dataset).columns}
    types = {name: profile.type for name, profile in profiles.items()}
    types[spec.config.target] = target_type(profiles[spec.config.target])
    columns = context.datasets.columns(spec.dataset, types=types)
    trained = with_baselines(train(columns, types, spec.config), columns, types)
    readings = context.datasets.get(spec.dataset).readings
    kept = readings_of(readings, spec.config.columns)
    trained = change(replace(trained, readings=kept))
    directory = context.settings.data_dir / f"artifact-{job_id}"
    trained = write_model(trained, directory)
    return context.registry.publish(
        claim, spec.model, directory, trained.description, spec.dataset, spec.alias
    )


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
