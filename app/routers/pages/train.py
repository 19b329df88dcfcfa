"""`/ui/train`: the form for a training, with all settings as recommended."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep
from app.http.bodies import parse, refuse_non_finite
from app.ui.labels import METHODS
from app.ui.pages import show
from app.ui.train_form.form import training_form
from core.database.schema import Json

router = APIRouter(include_in_schema=False)

MOST_DATASETS = 200  # to choose from; the pages of the others link here


@router.get("/ui/train")
def train(
    request: Request,
    context: ContextDep,
    dataset: Annotated[str | None, Query(max_length=64)] = None,
    wanted: Annotated[str, Query(alias="request", max_length=60_000)] = "{}",
    retrained: Annotated[int | None, Query(alias="of")] = None,
) -> HTMLResponse:
    """The form.

    Args:
        wanted: any part of a body of `POST /train`, as JSON.
        retrained: the number of the version that is trained again.
    """
    body = _body(wanted, dataset)
    datasets = context.datasets.list(MOST_DATASETS).data
    form = training_form(context, body) if "dataset" in body else None
    if form is not None and form.dataset.id not in [one.id for one in datasets]:
        datasets.append(form.dataset)
    return show(
        request, "train.html", form=form, datasets=datasets, methods=METHODS, retrained=retrained
    )


def _body(wanted: str, dataset: str | None) -> Json:
    """The body with the chosen data set, without inline rows: the page does not support them."""
    body = parse(wanted.encode())
    refuse_non_finite(body)
    chosen = {} if dataset is None else {"dataset": dataset}
    return {name: value for name, value in body.items() if name != "data"} | chosen
