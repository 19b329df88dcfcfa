"""The application: built without side effects, opened and closed by its lifespan."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from anyio import to_thread
from fastapi import Depends, FastAPI

from app import errors, openapi
from app.dependencies import Services, refuse_strange_parameters
from app.health import Health
from app.metrics import Metrics
from app.middleware import middleware
from app.release import release
from app.routers import datasets, docs, health, jobs, models, predictions, training
from app.serving.admission import Admission, Limits
from app.serving.engine import Engine
from app.serving.model_cache import ModelCache
from app.serving.predictor import Predictor
from app.serving.resolver import Resolver
from core.context import Context, open_context
from core.devices import service_device
from core.registry import Version
from core.settings import Settings
from models import checkpoint
from models.model import BayesianModel

CLOSE_SECONDS = 1.0  # for work whose clients are gone: requests in flight were answered before


def create_app(settings: Settings) -> FastAPI:
    """The service with these settings; nothing is opened before it starts.

    Raises:
        InvalidSetting: if the settings ask for a device that is not there.
    """
    service_device(settings)
    app = FastAPI(
        title="Credence",
        description="Predictions that know what they don't know.",
        version=release(),
        lifespan=_lifespan,
        middleware=middleware(settings.max_body_bytes),
        dependencies=[Depends(refuse_strange_parameters)],
        docs_url=None,
        redoc_url=None,
    )
    app.state.settings = settings
    for module in (datasets, training, jobs, models, predictions, health, docs):
        app.include_router(module.router)
    docs.mount_assets(app)
    errors.install(app)
    openapi.install(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open what the process needs; close it once the requests in flight are answered."""
    settings: Settings = app.state.settings
    context = await to_thread.run_sync(open_context, settings)
    engine = Engine(settings.threads)
    try:
        app.state.services = _services(context, engine)
        yield
    finally:
        await to_thread.run_sync(engine.close, CLOSE_SECONDS)
        await to_thread.run_sync(context.close)


def _services(context: Context, engine: Engine) -> Services:
    settings = context.settings
    metrics = Metrics(context.jobs.counts)
    checks = {
        "database": context.database.check,
        "broker": context.queue.check,
        "artifact_store": context.store.check,
    }
    return Services(
        context=context,
        metrics=metrics,
        health=Health(engine, checks),
        predictor=Predictor(
            limits=Limits(settings.max_samples, settings.max_work),
            resolver=Resolver(context.registry.get),
            cache=ModelCache(_loader(context), settings.model_cache_bytes),
            engine=engine,
            admission=Admission(settings.max_queued_work),
            metrics=metrics,
        ),
    )


def _loader(context: Context) -> Callable[[Version], BayesianModel]:
    device = service_device(context.settings)

    def load(version: Version) -> BayesianModel:
        return checkpoint.read(context.registry.path(version), device)

    return load
