"""`/`: what there is, and what to do next."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep
from app.schemas.jobs import JobResponse
from app.schemas.models import ModelSummary
from app.ui.pages import HOME, show

router = APIRouter(include_in_schema=False)

MOST = 5  # of each kind: the lists have all


@router.get(HOME)
def home(request: Request, context: ContextDep) -> HTMLResponse:
    """The newest data sets, jobs and models; on an empty service, how to begin."""
    return show(
        request,
        "home.html",
        datasets=context.datasets.list(limit=MOST).data,
        jobs=[JobResponse.model_validate(job) for job in context.jobs.list(limit=MOST).data],
        models=[ModelSummary.of(newest) for newest in context.registry.list(limit=MOST).data],
    )
