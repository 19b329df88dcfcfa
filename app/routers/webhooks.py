"""`/webhooks`: receivers of events, and the log of what they were told."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from app.dependencies import ContextDep, PagingDep
from app.http.bodies import json_body
from app.http.idempotency import CreatingRoute
from app.http.large_answers import large_answer
from app.openapi import json_request, problems
from app.schemas.common import PageResponse
from app.schemas.webhooks import (
    DeliveryResponse,
    NewWebhookResponse,
    WebhookRequest,
    WebhookResponse,
)

router = APIRouter(tags=["webhooks"], route_class=CreatingRoute)

EXAMPLE = {
    "url": "https://hooks.example.org/credence",
    "events": ["job.succeeded", "job.failed", "alias.moved"],
}


@router.post(
    "/webhooks",
    status_code=201,
    responses=problems(400, 409, 415, 422, 503),
    openapi_extra=json_request(WebhookRequest, EXAMPLE),
)
def create_webhook(
    request: Annotated[WebhookRequest, Depends(json_body(WebhookRequest))],
    context: ContextDep,
    response: Response,
) -> NewWebhookResponse:
    """Tell a receiver of events, by requests that are signed as Standard Webhooks says.

    Only things of the same owner are told. The response is the only one with the secret.
    """
    made = context.webhooks.create(request.url, request.events)
    response.headers["Location"] = f"/webhooks/{made.id}"
    return NewWebhookResponse.model_validate(made)


@router.get("/webhooks", response_model=PageResponse[WebhookResponse], responses=problems(422, 503))
def list_webhooks(request: Request, context: ContextDep, paging: PagingDep) -> Response:
    """Webhooks, newest first."""
    page = context.webhooks.list(paging.limit, paging.cursor)
    return large_answer(request, PageResponse[WebhookResponse].model_validate(page))


@router.get("/webhooks/{webhook_id}", responses=problems(404, 503))
def get_webhook(context: ContextDep, webhook_id: str) -> WebhookResponse:
    """A webhook, and whether it is disabled."""
    return WebhookResponse.model_validate(context.webhooks.get(webhook_id))


@router.delete("/webhooks/{webhook_id}", status_code=204, responses=problems(404, 503))
def delete_webhook(context: ContextDep, webhook_id: str) -> None:
    """Delete a webhook with its deliveries."""
    context.webhooks.delete(webhook_id)


@router.post("/webhooks/{webhook_id}/enable", responses=problems(404, 422, 503))
def enable_webhook(context: ContextDep, webhook_id: str) -> WebhookResponse:
    """Enable a webhook that was disabled because its receiver failed for days."""
    return WebhookResponse.model_validate(context.webhooks.enable(webhook_id))


@router.get(
    "/webhooks/{webhook_id}/deliveries",
    response_model=PageResponse[DeliveryResponse],
    responses=problems(404, 422, 503),
)
def list_deliveries(
    request: Request, context: ContextDep, paging: PagingDep, webhook_id: str
) -> Response:
    """The deliveries of the last 30 days, newest first."""
    page = context.webhooks.deliveries(webhook_id, paging.limit, paging.cursor)
    return large_answer(request, PageResponse[DeliveryResponse].model_validate(page))


@router.post(
    "/webhooks/{webhook_id}/deliveries/{delivery_id}/replay", responses=problems(404, 409, 503)
)
def replay(context: ContextDep, webhook_id: str, delivery_id: str) -> DeliveryResponse:
    """Send a delivery that has ended again, with the same id and body."""
    return DeliveryResponse.model_validate(context.webhooks.replay(webhook_id, delivery_id))
