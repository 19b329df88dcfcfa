"""`/ui/system`: health, queue, workers, and measurements of this process."""

import platform
from collections.abc import Collection
from datetime import timedelta

import torch
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep, Services, ServicesDep
from app.routers.pages.permissions import may_operate
from app.ui.monitoring import Alarm, alarms
from app.ui.pages import show
from app.ui.process_metrics import drift, latency_chart, requests_by_status
from core.clock import database_now
from core.context import Context
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
async def system(request: Request, services: ServicesDep, context: ContextDep) -> HTMLResponse:
    """The page; without jobs and workers while the database is unavailable.

    Jobs, workers and requests are of all owners, so they are for administrators alone. Others see
    the models that they may predict with.
    """
    operates = may_operate(request)
    states = {"engine": services.health.engine()} | await services.health.services()
    has_database = states["database"] == "ok"
    run, share = services.plain.run, context.caller.share
    queue = await run(share, _queue, services) if has_database and operates else None
    found, drifts = services.predictor.cache.loaded(), drift(services.metrics)
    names = {entry.version.model for entry in found} | {one.model for one in drifts}
    if not operates:
        names = await run(share, _visible, context, names) if has_database else set()
    return show(
        request,
        "system.html",
        services=[(name, SERVICES[name], state) for name, state in states.items()],
        backlog=queue and queue[0],
        workers=queue[1] if queue else [],
        live=LIVE.total_seconds(),
        process=_process(services),
        operates=operates,
        loaded=[entry for entry in found if entry.version.model in names],
        chart=latency_chart(services.metrics) if operates else None,
        statuses=requests_by_status(services.metrics) if operates else {},
        drift=[one for one in drifts if one.model in names],
        alarms=await run(share, _alarms, context) if has_database else [],
    )


def _visible(context: Context, names: Collection[str]) -> set[str]:
    """Those of the models that the caller may see."""
    try:
        return context.registry.visible(names)
    except Unavailable:
        return set()


def _alarms(context: Context) -> list[Alarm]:
    try:
        return alarms(context)
    except Unavailable:
        return []


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
