"""The application, and the services that it opens at the start and closes at the end."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter

import torch
from anyio import CapacityLimiter, to_thread
from fastapi import Depends, FastAPI
from fastapi.telemetry import TelemetryConfig

from app import errors, openapi
from app.access.key_ring import KeyRing
from app.dependencies import Services, check_parameters
from app.health import Health
from app.http.direct_path import DirectPath, Service
from app.http.event_streams import EventStreams
from app.http.middleware import middleware
from app.metrics.metrics import Metrics
from app.routers import (
    archives,
    audit,
    batch,
    compare,
    datasets,
    docs,
    expected,
    feedback,
    health,
    inference_protocol,
    jobs,
    models,
    predictions,
    results,
    sharing,
    training,
)
from app.routers.pages import PAGES
from app.serving.adaptation import Adaptation
from app.serving.admission import Admission, Limits
from app.serving.engine import Engine, frequent_thread_switches
from app.serving.model_cache import ModelCache
from app.serving.prediction_store import PredictionStore
from app.serving.predictor import Predictor
from app.serving.throughput import Throughput
from app.serving.versions import Lookup, Reference, VersionLookup
from app.serving.warm_up import warm_up
from app.ui.pages import mount_assets
from core.access.callers import Caller, View
from core.access.keys import Keys
from core.context import Context, open_context
from core.jobs.backlog import read_backlog
from core.predictions.stored_predictions import StoredPredictions
from core.process.devices import service_device
from core.registry.registry import Registry, Version
from core.release import release
from core.settings import Settings
from core.telemetry.tracing import flush_traces, start_tracing
from models.artifact.files import read_model
from models.model import TrainedModel
from models.prediction.compiled.compiler import compiler

# Spans of requests only: metrics and logs are exported by other means; health checks are excluded.
TELEMETRY: TelemetryConfig = {
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
    "exclude": lambda scope: str(scope["path"]).startswith(("/health", "/v2/health", "/metrics")),
}
MAX_WRITERS = 8  # threads for uploads, besides the 40 that all other routes share
MAX_READERS = 2  # threads that read sources: others wait
CLOSE_SECONDS = 1.0  # for computations without a client; running requests are answered before


def create_app(settings: Settings, host: str = "127.0.0.1") -> FastAPI:
    """The service. It opens databases and stores when it starts, not here.

    Args:
        host: the address on which the service will listen. A loopback address needs no keys.

    Raises:
        InvalidSetting: the device does not exist, or the admin key file holds no key.
    """
    service_device(settings)
    key_ring = KeyRing(settings, host)
    app = Service(
        title="Credence",
        description="Predictions that know what they don't know.",
        version=release(),
        lifespan=_lifespan,
        telemetry=TELEMETRY,
        middleware=middleware(settings.max_body_bytes, settings.body_seconds, key_ring),
        dependencies=[Depends(check_parameters)],
        docs_url=None,
        redoc_url=None,
    )
    app.state.settings, app.state.key_ring = settings, key_ring
    app.direct = DirectPath(settings, key_ring, predictions.predict, inference_protocol.infer)
    for module in (
        predictions,
        inference_protocol,
        batch,
        feedback,
        datasets,
        training,
        compare,
        jobs,
        results,
        models,
        expected,
        archives,
        sharing,
        audit,
        health,
        docs,
        *PAGES,
    ):
        app.include_router(module.router)
    docs.mount_assets(app)
    mount_assets(app)
    errors.install(app)
    openapi.install(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the services, and close them after the running requests are answered."""
    settings: Settings = app.state.settings
    key_ring: KeyRing = app.state.key_ring
    start_tracing("credence-api")
    context = await to_thread.run_sync(open_context, settings)
    metrics = Metrics(settings.data_dir, partial(read_backlog, context.database))
    throughput = Throughput()
    engine = Engine(settings.threads, throughput, metrics.observe_batch)
    try:
        await to_thread.run_sync(key_ring.start, Keys(context.database))
        app.state.services = _services(context, metrics, throughput, engine)
        with frequent_thread_switches():
            yield
    finally:
        key_ring.stop()
        await to_thread.run_sync(engine.close, CLOSE_SECONDS)
        await to_thread.run_sync(context.close)
        await to_thread.run_sync(flush_traces)


def _services(
    context: Context, metrics: Metrics, throughput: Throughput, engine: Engine
) -> Services:
    settings = context.settings
    checks = {
        "database": context.database.check,
        "broker": context.queue.check,
        "artifact_store": context.store.check,
    }
    predictor = Predictor(
        limits=Limits(settings.max_samples, settings.max_work),
        versions=VersionLookup(_lookup(context)),
        cache=ModelCache(_loader(context, throughput), settings.model_cache_bytes),
        engine=engine,
        adaptation=Adaptation(context.feedback.labels),
        observe=metrics.observe_prediction,
        admission=Admission(settings.max_queued_work, throughput, settings.max_queued_seconds),
        store=PredictionStore(
            partial(StoredPredictions, context.database, settings.max_stored_bytes)
        ),
    )
    metrics.watch(predictor.cache, predictor.admission, engine)
    metrics.watch_feedback(context.feedback.recent)
    return Services(
        context=context,
        metrics=metrics,
        health=Health(engine, checks),
        predictor=predictor,
        event_streams=EventStreams(),
        writers=CapacityLimiter(MAX_WRITERS),
        readers=CapacityLimiter(MAX_READERS),
    )


def _lookup(context: Context) -> Lookup:
    def look_up(view: View, model: str, reference: Reference) -> Version:
        return Registry(context.database, context.store, Caller(view)).get(model, reference)

    return look_up


# Kernels are read from their cache in half a second: loads right after the start wait for them.
# Kernels that are not in the cache are compiled by a child for longer: meanwhile torch answers.
CACHED_SECONDS = 2.0


def _loader(context: Context, throughput: Throughput) -> Callable[[Version], TrainedModel]:
    settings = context.settings
    device = service_device(settings)
    compiler().start(in_child=True)
    cached_by = perf_counter() + CACHED_SECONDS

    def load(version: Version) -> TrainedModel:
        torch.set_num_threads(settings.threads)  # OpenMP keeps this per calling thread
        compiler().wait(max(0.0, cached_by - perf_counter()))
        model = read_model(context.registry.path(version), device)
        warm_up(version.artifact_key, model, throughput)
        return model

    return load
