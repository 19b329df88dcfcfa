"""`/health` and `/metrics`, for monitoring."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from app.dependencies import ServicesDep
from app.openapi import problems
from app.schemas.health import LiveResponse, ReadyResponse
from core.exceptions import Unavailable

router = APIRouter(tags=["operation"])


@router.get("/health/live")
async def live() -> LiveResponse:
    """The process responds."""
    return LiveResponse()


@router.get("/health/ready", responses=problems(503))
async def ready(services: ServicesDep) -> ReadyResponse:
    """The prediction engine makes progress. The response has the state of the other services.

    The service is ready even without database, broker and store: predictions from loaded models
    need none of them.
    """
    engine = services.health.engine()
    if engine in ("stuck", "dead"):
        raise Unavailable(f"the prediction engine makes no progress: it is {engine}")
    return ReadyResponse.model_validate({"engine": engine} | await services.health.services())


@router.get("/metrics", response_class=Response)
async def metrics(services: ServicesDep) -> Response:
    """Metrics in Prometheus' text format."""
    return Response(await services.scrapes.text(), media_type=CONTENT_TYPE_LATEST)
