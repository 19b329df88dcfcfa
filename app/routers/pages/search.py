"""`/ui/search`: the list below the search field of every page."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep
from app.routers.pages.jobs import KINDS
from app.routers.pages.permissions import may_train
from app.ui.pages import show
from app.ui.terms import TERMS, anchor, find_terms, terms_about

router = APIRouter(include_in_schema=False)

MOST = 6  # of each kind: more words find the others


@router.get("/ui/search")
def search(
    request: Request, context: ContextDep, text: Annotated[str, Query(max_length=200)] = ""
) -> HTMLResponse:
    """Models, data sets, jobs and terms; a key of scope `predict` finds only models and terms."""
    find, trains = context.search, may_train(request)
    models = find.models(text, MOST)
    datasets = find.datasets(text, MOST) if trains else []
    jobs = find.jobs(text, MOST) if trains else []
    terms = find_terms(text, MOST)
    if not (models or datasets or jobs or terms):
        terms = terms_about(text, MOST)
    return show(
        request,
        "search.html",
        text=text,
        models=models,
        datasets=datasets,
        jobs=jobs,
        terms=[(anchor(name), name, TERMS[name]) for name in terms],
        kinds=KINDS,
    )
