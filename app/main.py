"""The application, and the services that it opens at the start and closes at the end."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter

import torch
from anyio import to_thread
from fastapi import Depends, FastAPI
from fastapi.telemetry import TelemetryConfig

from app import errors, openapi
from app.access.key_ring import KeyRing
from app.dependencies import Services, check_parameters
from app.health import Health
from app.http.caller_threads import CallerThreads
from app.http.direct_path import DirectPath, Service
from app.http.event_streams import EventStreams
from app.http.large_work import LargeWork
from app.http.middleware import OpenBodies, middleware
from app.http.path_prefix import Proxies
from app.metrics.metrics import Metrics
from app.metrics.routes import RouteTemplates
from app.metrics.scrapes import Scrapes
from app.plain_routes import MAX_REQUESTS, THREADS, take_turn
from app.rendered_cards import RenderedCards
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
    schedules,
    sharing,
    training,
    webhooks,
)
from app.routers.pages import PAGES
from app.serving.adaptation import Adaptation
from app.serving.admission import Admission, Limits
from app.serving.deleted_models import forgetting_deleted_models
from app.serving.engine import Engine, frequent_thread_switches
from app.serving.model_cache import ModelCache
from app.serving.prediction_store import PredictionStore
from app.serving.predictor import Predictor
from app.serving.throughput import Throughput
from app.serving.versions import Lookup, Reference, VersionLookup
from app.serving.warm_up import warm_up
from app.ui import pages
from core.access.callers import Caller, View
from core.access.keys import Keys
from core.access.recorded_settings import record_settings
from core.context import Context, open_context
from core.jobs.backlog import read_backlog
from core.predictions.stored_predictions import StoredPredictions
from core.process.devices import service_device
from core.registry.documents import loaded_bytes
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
# Threads of each caller, besides the 40 that all other routes share, and requests of all callers.
# Each upload holds a megabyte. With eight threads of a caller that inflate, the event loop waited
# for the interpreter for two seconds.
WRITERS, MAX_UPLOADS = 2, 128
READERS, MAX_READINGS = 2, 32
CLOSE_SECONDS = 1.0  # for computations without a client; running requests are answered before


def create_app(settings: Settings, host: str = "127.0.0.1") -> FastAPI:
    """The service. It opens databases and stores when it starts, not here.

    Args:
        host: the address on which the service will listen. A loopback address needs no keys.

    Raises:
        InvalidSetting: the device does not exist, the admin key file holds no key, or the prefix
            begins like a path of the service.
    """
    service_device(settings)
    key_ring, open_bodies = KeyRing(settings, host), OpenBodies()
    app = Service(
        title="Credence",
        description="Predictions that know what they don't know.",
        version=release(),
        lifespan=_lifespan,
        telemetry=TELEMETRY,
        middleware=middleware(
            settings.max_body_bytes, settings.body_seconds, key_ring, open_bodies
        ),
        dependencies=[Depends(check_parameters), Depends(take_turn, scope="function")],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.settings, app.state.key_ring = settings, key_ring
    app.state.open_bodies = open_bodies
    endpoints = predictions.predict, inference_protocol.infer
    app.direct = DirectPath(settings, key_ring, open_bodies, *endpoints)
    app.outermost = Proxies(app.answer, settings)
    modules = (
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
        schedules,
        sharing,
        webhooks,
        audit,
        health,
        docs,
        *PAGES,
    )
    for module in modules:
        app.include_router(module.router)
    mounts = (docs.ASSETS_URL, pages.ASSETS_URL, pages.PLOTLY_URL)
    app.state.templates = RouteTemplates([module.router for module in modules], mounts)
    docs.mount_assets(app)
    pages.mount_assets(app)
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
    await to_thread.run_sync(record_settings, context.database, settings)
    metrics = Metrics(settings.data_dir, partial(read_backlog, context.database))
    throughput, large_work = Throughput(), LargeWork()
    engine = Engine(settings.threads, throughput, metrics.observe_batch)
    try:
        await to_thread.run_sync(key_ring.start, Keys(context.database))
        services = app.state.services = _services(context, metrics, throughput, engine, large_work)
        with frequent_thread_switches():
            predictor = services.predictor
            holders = (
                *(predictor.cache, predictor.versions, predictor.adaptation),
                *(throughput, services.cards),
            )
            async with forgetting_deleted_models(holders, context.registry.stored):
                yield
    finally:
        key_ring.stop()
        await to_thread.run_sync(engine.close, CLOSE_SECONDS)
        large_work.close()
        await to_thread.run_sync(context.close)
        await to_thread.run_sync(flush_traces)


def _services(
    context: Context,
    metrics: Metrics,
    throughput: Throughput,
    engine: Engine,
    large_work: LargeWork,
) -> Services:
    settings = context.settings
    checks = {
        "database": context.database.check,
        "broker": context.queue.check,
        "artifact_store": context.store.check,
    }
    predictor = Predictor(
        limits=Limits(
            settings.max_samples,
            settings.max_work,
            settings.max_answer_bytes,
            settings.max_whole_seconds,
        ),
        versions=VersionLookup(_lookup(context)),
        cache=ModelCache(
            _loader(context, throughput),
            settings.model_cache_bytes,
            memory=context.memory,
            expected=lambda version: loaded_bytes(context.registry.path(version)),
        ),
        engine=engine,
        large_work=large_work,
        adaptation=Adaptation(context.feedback.labels),
        observe=metrics.observe_prediction,
        admission=Admission(settings.max_queued_work, throughput, settings.max_queued_seconds),
        store=PredictionStore(
            partial(StoredPredictions, context.database, settings.max_stored_bytes)
        ),
    )
    metrics.watch(predictor.cache, predictor.admission, engine)
    metrics.watch_memory(context.memory)
    metrics.watch_feedback(context.feedback.recent)
    metrics.watch_deletions(context.registry.existing)
    return Services(
        context=context,
        metrics=metrics,
        scrapes=Scrapes(metrics.text),
        health=Health(engine, checks),
        predictor=predictor,
        event_streams=EventStreams(),
        cards=RenderedCards(),
        writers=CallerThreads("uploads", WRITERS, MAX_UPLOADS),
        readers=CallerThreads("readings of sources", READERS, MAX_READINGS),
        plain=CallerThreads("requests", THREADS, MAX_REQUESTS),
        large_work=large_work,
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
        model = read_model(context.registry.path(version), device).without_records()
        warm_up(version.artifact_key, model, throughput)
        return model

    return load
