"""`/ui/models/{name}/versions/{version}/expected`: scores to expect of rows without labels."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep, ServicesDep
from app.schemas.common import DatasetId
from app.serving.expected import DEFAULT_ROWS, ExpectedScores, expected_scores
from app.ui.pages import show
from core.context import Context
from core.datasets.inputs import ADVICE
from core.exceptions import Invalid
from core.registry.registry import Version
from models.evaluation.scores import BY_NAME
from models.exceptions import InvalidInput

router = APIRouter(include_in_schema=False)

MOST_DATASETS = 50  # to choose from, the newest ones
LEVEL = 0.9


@router.get("/ui/models/{name}/versions/{version}/expected")
async def expected(
    request: Request,
    services: ServicesDep,
    context: ContextDep,
    name: str,
    version: str,
    *,
    dataset: Annotated[DatasetId | None, Query()] = None,
) -> HTMLResponse:
    """A list of data sets to choose from, and the expected scores of the chosen one."""
    run, share = services.plain.run, context.caller.share
    found = await run(share, context.registry.get, name, version)
    datasets = await run(share, context.datasets.list, MOST_DATASETS)
    scores, refusal = None, None
    if dataset is not None:
        try:
            scores = await expected_scores(
                services.predictor,
                services.plain,
                context,
                found,
                dataset,
                prune=0.0,
                level=LEVEL,
                rows=DEFAULT_ROWS,
                seed=0,
            )
        except (Invalid, InvalidInput) as error:
            refusal = _reason(error)
    return await run(share, _page, request, context, found, datasets.data, dataset, scores, refusal)


def _reason(error: Invalid | InvalidInput) -> str:
    """Why the data set cannot be used, without the advice for programs: the page has its own."""
    messages = [text for _, text in error.errors] if isinstance(error, Invalid) else [str(error)]
    return "; ".join(text.removesuffix(f": {ADVICE}") for text in messages)


def _page(  # noqa: PLR0917 - the values of the template
    request: Request,
    context: Context,
    version: Version,
    datasets: object,
    dataset: str | None,
    scores: ExpectedScores | None,
    refusal: str | None,
) -> HTMLResponse:
    page = show(
        request,
        "expected.html",
        version=version,
        datasets=datasets,
        chosen=None if dataset is None else context.datasets.get(dataset),
        found=scores,
        level=LEVEL,
        labels={name: score.title for name, score in BY_NAME.items()},
        refusal=refusal,
    )
    page.status_code = 200 if refusal is None else 422
    return page
