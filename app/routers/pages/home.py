"""`/`: the newest data sets, jobs and models, problems, and the next step."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from app.dependencies import ContextDep
from app.routers.pages.jobs import KINDS
from app.routers.pages.permissions import may_train
from app.schemas.models import ModelSummary
from app.ui.monitoring import alarms
from app.ui.pages import HOME, show
from app.ui.reading import upload_fields
from core.datasets.dataset import Dataset
from core.jobs.backlog import read_backlog
from core.jobs.jobs import FINAL, Job, JobStatus

router = APIRouter(include_in_schema=False)

MOST = 5  # of each kind


@router.get(HOME)
def home(request: Request, context: ContextDep) -> Response:
    """The newest data sets, jobs and models; on an empty service, the first steps.

    A key of scope `predict` is redirected to the models.
    """
    if not may_train(request):
        return RedirectResponse("/ui/models", 303)
    backlog = read_backlog(context.database)
    jobs = context.jobs.list(limit=MOST).data
    datasets = context.datasets.list(limit=MOST).data
    models = [
        ModelSummary.model_validate(newest) for newest in context.registry.list(limit=MOST).data
    ]
    return show(
        request,
        "home.html",
        datasets=datasets,
        jobs=jobs,
        models=models,
        alarms=alarms(context),
        kinds=KINDS,
        failed=_failed(jobs),
        has_workers=any(backlog.live_workers.values()),
        has_queue=backlog.queued > 0,
        next=_next(models, jobs, datasets),
        options=upload_fields(),
    )


def _failed(jobs: Sequence[Job]) -> list[Job]:
    """The failed jobs, of several of one model and kind the newest."""
    newest: dict[tuple[str, str | None], Job] = {}
    for job in jobs:
        newest.setdefault((job.kind, job.model), job)
    return [job for job in newest.values() if job.status is JobStatus.FAILED]


def _next(
    models: Sequence[ModelSummary], jobs: Sequence[Job], datasets: Sequence[Dataset]
) -> tuple[str, str, str] | None:
    """The next step of a new user: a sentence, an address and the text of the button."""
    if models:
        return ("Predict new rows with a model.", "/ui/predict", "Predict")
    if running := [job for job in jobs if job.status not in FINAL]:
        return (
            "Your first model is being trained.",
            f"/ui/jobs/{running[0].id}",
            "Watch the training",
        )
    if datasets:
        address = f"/ui/train?dataset={datasets[0].id}"
        return ("Your data are ready. Choose the column to predict.", address, "Train a model")
    return None
