"""`/ui/schedules`: the list of schedules, and the page of one with its runs."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep, PagingDep
from app.ui.pages import show

router = APIRouter(include_in_schema=False)

BADGES = {"passed": "succeeded", "refused": "cancelled", "unchanged": "queued"}
"""The badge of a job that looks right for what a gate decided."""


@router.get("/ui/schedules")
def schedules(request: Request, context: ContextDep, paging: PagingDep) -> HTMLResponse:
    """Schedules, newest first."""
    page = context.schedules.list(paging.limit, paging.cursor)
    return show(request, "schedules.html", page=page, paging=paging, badges=BADGES)


@router.get("/ui/schedules/{name}")
def schedule(request: Request, context: ContextDep, name: str, paging: PagingDep) -> HTMLResponse:
    """A schedule and its runs, with the sentence of each gate."""
    runs = context.schedules.runs(name, paging.limit, paging.cursor)
    found = context.schedules.get(name)
    return show(request, "schedule.html", schedule=found, page=runs, paging=paging, badges=BADGES)
