"""`/ui/webhooks`: receivers of events, and what one of them was told."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep, PagingDep
from app.ui.pages import show
from core.webhooks.event_types import EventType
from core.webhooks.outbox import PENDING

router = APIRouter(include_in_schema=False)

MEANINGS = {
    EventType.JOB_SUCCEEDED: "a job succeeded",
    EventType.JOB_FAILED: "a job failed",
    EventType.JOB_CANCELLED: "a job was cancelled",
    EventType.ALIAS_MOVED: "an alias names another version",
    EventType.ALIAS_REMOVED: "an alias was removed",
    EventType.GATE_PASSED: "a scheduled training passed its gate",
    EventType.GATE_REFUSED: "a scheduled training did not pass its gate",
    EventType.DRIFT_FOUND: "rows leave what training promised",
    EventType.COVERAGE_LEFT: "labels show that intervals, or probabilities, do not hold any more",
    EventType.COVERAGE_BACK: "labels show that they hold again",
}


@router.get("/ui/webhooks")
def webhooks(request: Request, context: ContextDep, paging: PagingDep) -> HTMLResponse:
    """A form for a new webhook, and all webhooks, newest first."""
    page = context.webhooks.list(paging.limit, paging.cursor)
    is_closed = not context.webhook_rules.entries
    return show(
        request, "webhooks.html", page=page, paging=paging, meanings=MEANINGS, is_closed=is_closed
    )


@router.get("/ui/webhooks/{webhook_id}")
def webhook(
    request: Request, context: ContextDep, paging: PagingDep, webhook_id: str
) -> HTMLResponse:
    """One webhook, and its deliveries, newest first."""
    return show(
        request,
        "webhook.html",
        webhook=context.webhooks.get(webhook_id),
        page=context.webhooks.deliveries(webhook_id, paging.limit, paging.cursor),
        paging=paging,
        pending=PENDING,
    )
