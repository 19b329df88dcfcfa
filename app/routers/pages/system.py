"""`/ui/system`: health, queue, workers, and measurements of this process."""

import platform
from datetime import timedelta

import torch
from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.dependencies import Services, ServicesDep
from app.ui.pages import show
from app.ui.process_metrics import drift, latency_chart, requests_by_status
from core.clock import database_now
from core.database.schema import Json, WorkerRow
from core.exceptions import Unavailable
from core.jobs.backlog import KNOWN, LIVE, Backlog, read_backlog
from core.process.devices import service_device
from core.release import release

router = APIRouter(include_in_schema=False)

SERVICES = {
    "engine": "computes predictions",
    "database": "stores metadata of data sets, jobs and models",
    "broker": "wakes workers",
    "artifact_store": "stores data and model files",
}


@router.get("/ui/system")
async def system(request: Request, services: ServicesDep) -> HTMLResponse:
    """The page; without jobs and workers while the database is unavailable."""
    states = {"engine": services.health.engine()} | await services.health.services()
    queue = await to_thread.run_sync(_queue, services) if states["database"] == "ok" else None
    return show(
        request,
        "system.html",
        services=[(name, SERVICES[name], state) for name, state in states.items()],
        backlog=queue and queue[0],
        workers=queue[1] if queue else [],
        live=LIVE.total_seconds(),
        process=_process(services),
        loaded=services.predictor.cache.loaded(),
        chart=latency_chart(services.metrics),
        statuses=requests_by_status(services.metrics),
        drift=drift(services.metrics),
    )


def _queue(services: Services) -> tuple[Backlog, list[tuple[WorkerRow, timedelta]]] | None:
    """The queue, and the workers with the ages of their heartbeats; None without the database."""
    context = services.context
    try:
        with context.database.read() as session:
            now = database_now(session)
        ages = [(w, now - w.heartbeat_at) for w in context.workers.list()]
        return read_backlog(context.database), [(w, age) for w, age in ages if age < KNOWN]
    except Unavailable:
        return None


def _process(services: Services) -> Json:
    settings = services.context.settings
    return {
        "device": service_device(settings),
        "threads": settings.threads,
        "Credence": release(),
        "Python": platform.python_version(),
        "torch": torch.__version__,
    }
