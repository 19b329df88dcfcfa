"""`/ui/models`: models, their versions with scores and aliases, and the page of a version."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep, PagingDep
from app.routers.pages.permissions import card_of, may_change, may_label
from app.schemas.models import ModelResponse, ModelSummary, VersionResponse
from app.ui.labels import METHODS
from app.ui.monitoring import alarms, by_chance, feedback_verdict, how_often, waiting
from app.ui.pages import show
from app.ui.prediction_form import can_fill_in, form_data
from app.ui.scores import headline, known_scores, score_table, trust
from app.ui.version_tabs import Tab, contents, tabs_of
from core.access.callers import MODEL
from core.context import Context
from core.database.schema import Json
from core.exceptions import NotFound
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
        alarms=alarms(context),
    )


@router.get("/ui/models/{name}")
def model(request: Request, context: ContextDep, name: str) -> HTMLResponse:
    """Versions side by side, with their aliases."""
    versions = context.registry.versions(name)
    is_same_data = len({v.dataset for v in versions}) == 1
    headers, scores = score_table(
        [v.description["metrics"] for v in versions], is_same_data=is_same_data
    )
    is_own = may_change(request, context, versions[0])
    return show(
        request,
        "model.html",
        model=ModelResponse.of(name, versions),
        about=versions[0].description,
        champion=CHAMPION,
        headers=headers,
        scores=scores,
        is_same_data=is_same_data,
        may_change=is_own,
        readers=_readers(context, versions[0]) if is_own else None,
        alarms=[one for one in alarms(context) if one.model == name],
    )


@router.get("/ui/models/{name}/versions/{version}")
def version(
    request: Request,
    context: ContextDep,
    name: str,
    version: str,
    tab: Annotated[Tab, Query()] = Tab.OVERVIEW,
) -> HTMLResponse:
    """A tab of the page of a version: its card, and charts of its predictions."""
    found = context.registry.get(name, version)
    about = VersionResponse.model_validate(found).model_dump(mode="json")
    card = card_of(request, context, found)
    feedback = context.feedback.rolling(found.model, found.version).metrics
    window = context.settings.feedback_rows
    question = form_data(about, card, context.settings.max_samples)
    dataset_name = _dataset_name(context, found.dataset) if card else None
    return show(
        request,
        "version.html",
        version=about,
        champion=CHAMPION,
        trust=trust(about["metrics"]),
        headline=headline(about["metrics"]),
        card=card,
        tab=tab.value,
        method=METHODS.get(about["method"]["kind"], (about["method"]["kind"],))[0],
        tabs=[one.value for one in tabs_of(card)],
        **contents(tab, card),
        question=question,
        can_fill_in=can_fill_in(question),
        feedback=feedback,
        feedback_scores=known_scores(feedback),
        verdict_now=feedback_verdict(feedback, window),
        chance=by_chance(feedback),
        alarm_at=how_often((feedback.get("check") or {}).get("alarm_p_value", 0.0)),
        labels_waiting=waiting(feedback, window),
        may_change=may_change(request, context, found),
        may_label=_takes_labels(about) and may_label(context, name),
        has_data=dataset_name is not None,
        dataset_name=dataset_name,
    )


def _takes_labels(version: Json) -> bool:
    """Not of texts, nor of several targets: their true values are sent as JSON."""
    tasks = ("regression", "classification", "forecasting")
    return version["task"] in tasks and not version.get("joint")


def _dataset_name(context: Context, dataset: str) -> str | None:
    """None if the data set is deleted."""
    try:
        return context.datasets.get(dataset).name
    except NotFound:
        return None


def _readers(context: Context, version: Version) -> list[str] | None:
    """The owners with whom a model is shared; None if it belongs to everybody."""
    if not version.owner:
        return None
    return list(context.shares.get(MODEL, version.model))
