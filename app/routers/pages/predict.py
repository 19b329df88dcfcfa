"""`/ui/predict`: the form for predictions of one model."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep
from app.routers.pages.permissions import card_of
from app.schemas.common import ModelName, Reference
from app.schemas.models import ModelSummary, VersionResponse
from app.ui.pages import show
from app.ui.prediction_form import can_fill_in, form_data
from core.context import Context
from core.database.schema import Json
from core.exceptions import NotFound
from core.paging import MAX_LIMIT
from core.registry.registry import Version

router = APIRouter(include_in_schema=False)

_HISTORY = 200  # rows that are filled in: classical members read more than the network
MOST = 100  # models to choose from; the page of models links to the others


@router.get("/ui/predict")
def predict(
    request: Request,
    context: ContextDep,
    model: Annotated[ModelName | None, Query()] = None,
    version: Annotated[Reference | None, Query()] = None,
) -> HTMLResponse:
    """The form of a model. Without `model`, a list to choose from, unless there is only one."""
    newest = context.registry.list(limit=MOST).data
    if model is None and len(newest) == 1:
        model = newest[0].model
    models = [ModelSummary.model_validate(found) for found in newest]
    if model is None:
        return show(request, "predict_choice.html", models=models)
    found = context.registry.get(model, version)
    about = VersionResponse.model_validate(found).model_dump(mode="json")
    card = card_of(request, context, found)
    question = form_data(about, card, context.settings.max_samples)
    return show(
        request,
        "predict.html",
        models=models,
        versions=context.registry.versions(model),
        version=about,
        question=question | {"history": _history(context, found, about) if card else []},
        can_fill_in=can_fill_in(question),
        has_card=card is not None,
    )


def _history(context: Context, version: Version, about: Json) -> list[Json]:
    """The last rows of the training series that a forecast reads; empty if they are deleted.

    If there are several series: the rows of the last row's series.
    """
    if about["task"] != "forecasting":
        return []
    forecast, key = about["forecast"], about["forecast"]["key"]
    try:
        dataset = context.datasets.get(version.dataset)
        num_series = next((c.num_levels or 1 for c in dataset.columns if c.name == key), 1)
        wanted = max(forecast["context"] + forecast["season"], _HISTORY)
        limit = min(wanted * num_series, MAX_LIMIT)
        rows = context.datasets.rows(dataset.id, limit, start=max(0, dataset.rows - limit))
    except NotFound:
        return []
    return [row for row in rows if key is None or row[key] == rows[-1][key]][-wanted:]
