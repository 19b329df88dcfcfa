"""`/ui/models`: models, their versions with scores and aliases, and the page of a version."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep, PagingDep
from app.routers.pages.permissions import card_of, may_change
from app.schemas.models import ModelResponse, ModelSummary, VersionResponse
from app.ui.card.page import sections
from app.ui.pages import show
from app.ui.prediction_form import can_fill_in, form_data
from app.ui.scores import headline, known_scores, score_table, trust
from core.access.callers import MODEL
from core.context import Context
from core.exceptions import NotFound
from core.predictions.window_check import verdict
from core.registry.registry import Version

router = APIRouter(include_in_schema=False)

CHAMPION = "champion"


@router.get("/ui/models")
def models(request: Request, context: ContextDep, paging: PagingDep) -> HTMLResponse:
    """All models by name, each with its newest version."""
    page = context.registry.list(paging.limit, paging.cursor)
    return show(
        request,
        "models.html",
        models=[
            (ModelSummary.model_validate(v), v.aliases, headline(v.description["metrics"]))
            for v in page.data
        ],
        next_cursor=page.next_cursor,
    )


@router.get("/ui/models/{name}")
def model(request: Request, context: ContextDep, name: str) -> HTMLResponse:
    """Versions side by side, with their aliases."""
    versions = context.registry.versions(name)
    headers, scores = score_table([v.description["metrics"] for v in versions])
    is_own = may_change(request, context, versions[0])
    return show(
        request,
        "model.html",
        model=ModelResponse.of(name, versions),
        about=versions[0].description,
        champion=CHAMPION,
        headers=headers,
        scores=scores,
        may_change=is_own,
        readers=_readers(context, versions[0]) if is_own else None,
    )


@router.get("/ui/models/{name}/versions/{version}")
def version(request: Request, context: ContextDep, name: str, version: str) -> HTMLResponse:
    """The card of a version, and charts of its predictions."""
    found = context.registry.get(name, version)
    about = VersionResponse.model_validate(found).model_dump(mode="json")
    card = card_of(request, context, found)
    feedback = context.feedback.rolling(found.model, found.version).metrics
    question = form_data(about, card, context.settings.max_samples)
    return show(
        request,
        "version.html",
        version=about,
        champion=CHAMPION,
        trust=trust(about["metrics"]),
        headline=headline(about["metrics"]),
        card=card,
        sections=sections(card) if card else [],
        question=question,
        can_fill_in=can_fill_in(question),
        feedback=feedback,
        feedback_scores=known_scores(feedback),
        feedback_verdict=verdict(feedback.get("check", {})),
        may_change=may_change(request, context, found),
        has_data=card is not None and _exists(context, found.dataset),
    )


def _exists(context: Context, dataset: str) -> bool:
    try:
        context.datasets.get(dataset)
    except NotFound:
        return False
    return True


def _readers(context: Context, version: Version) -> list[str] | None:
    """The owners with whom a model is shared; None if it belongs to everybody."""
    if not version.owner:
        return None
    return list(context.shares.get(MODEL, version.model))
