"""`/ui/predict`: the form for predictions of one model."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep
from app.routers.pages.permissions import card_of
from app.schemas.common import ModelName, Reference
from app.schemas.models import ModelSummary, VersionResponse
from app.ui.future_rows import future_rows, known_ahead, takes_local
from app.ui.pages import show
from app.ui.prediction_form import can_fill_in, form_data, steps_read
from core.context import Context
from core.database.schema import Json
from core.exceptions import NotFound
from core.paging import MAX_LIMIT
from core.registry.registry import Version

router = APIRouter(include_in_schema=False)

_HISTORY = 200  # rows that are filled in: classical members read more than the network
_SERIES = 1_000  # to choose from
MOST = 100  # models to choose from; the page of models links to the others


@router.get("/ui/predict")
def predict(
    request: Request,
    context: ContextDep,
    model: Annotated[ModelName | None, Query()] = None,
    version: Annotated[Reference | None, Query()] = None,
    series: Annotated[str | None, Query(max_length=1000)] = None,
) -> HTMLResponse:
    """The form of a model. Without `model`, a list to choose from, unless there is only one.

    `series` names the one whose history is filled in.
    """
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
    history, names = _history(context, found, about, series) if card else ((), ())
    return show(
        request,
        "predict.html",
        models=models,
        versions=context.registry.versions(model),
        version=about,
        question=question | {"history": history, "future": future_rows(history, about)},
        known_ahead=known_ahead(about),
        series=names[:_SERIES],
        num_series=len(names),
        can_fill_in=can_fill_in(question),
        steps_read=steps_read(about),
        has_card=card is not None,
    )


def _history(
    context: Context, version: Version, about: Json, series: str | None
) -> tuple[Sequence[Json], Sequence[str]]:
    """The last rows of a training series, as many as a forecast reads, and the names of all series.

    Of several series the rows are those of `series`, by default of the last row's. There are none
    if the data set is deleted.
    """
    if about["task"] != "forecasting":
        return (), ()
    key, datasets = about["forecast"]["key"], context.datasets
    wanted = min(max(steps_read(about), _HISTORY), MAX_LIMIT)
    try:
        dataset = datasets.get(version.dataset)
        names = _names_read(about, [column.name for column in dataset.columns])
        if key is None:
            start = max(0, dataset.rows - wanted)
            return _as_given(datasets.rows(dataset.id, wanted, names, start), about), ()
        history = datasets.newest_of(dataset.id, key, series, wanted, names)
        return _as_given(history, about), datasets.distinct(dataset.id, key)
    except NotFound:
        return (), ()


def _as_given(rows: Sequence[Json], about: Json) -> Sequence[Json]:
    """The rows; local times are without the Z that a data set gives them."""
    if not takes_local(about["forecast"]):
        return rows
    time = about["forecast"]["time"]
    return [row | {time: row[time] and row[time].removesuffix("Z")} for row in rows]


def _names_read(about: Json, names: Sequence[str]) -> Sequence[str]:
    """The columns that the forecaster reads: others would be refused."""
    forecast = about["forecast"]
    read = {forecast["time"], forecast["key"], about["target"]}
    read |= {feature["name"] for feature in about["features"] or ()}
    return [name for name in names if name in read]
