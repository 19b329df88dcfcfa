"""`GET /models/{name}/expected`: scores of rows whose truth is not known yet."""

import math
from typing import Annotated

from fastapi import APIRouter, Query, Request

from app.dependencies import ContextDep, ServicesDep, or_disconnect
from app.http.idempotency import CreatingRoute
from app.openapi import problems
from app.schemas.common import DatasetId, Reference
from app.schemas.expected import ExpectedResponse
from app.serving.expected import DEFAULT_ROWS, MOST_ROWS, ExpectedScores, expected_scores
from models.expected_scores.expectation import Expectation
from models.prediction.options import Prune

router = APIRouter(tags=["models"], route_class=CreatingRoute)

Level = Annotated[float, Query(ge=0.5, le=0.99, description="probability of the intervals")]
Rows = Annotated[
    int, Query(ge=1, le=MOST_ROWS, description="of a longer data set, so many drawn at random")
]
Seed = Annotated[int, Query(ge=0, lt=2**31, description="of the choice of the rows")]


@router.get("/models/{name}/expected", responses=problems(404, 422, 503))
async def get_expected(
    request: Request,
    services: ServicesDep,
    context: ContextDep,
    name: str,
    *,
    dataset: Annotated[DatasetId, Query()],
    version: Annotated[Reference | None, Query(description="default: the newest")] = None,
    prune: Annotated[Prune, Query()] = 0.0,
    level: Level = 0.9,
    rows: Rows = DEFAULT_ROWS,
    seed: Seed = 0,
) -> ExpectedResponse:
    """The scores to expect of a version on a data set without labels, each with an interval.

    Labels are simulated from the calibrated predictions, and scored as real ones; what the
    held-out rows of the training showed is corrected. There is an alert where a score of the
    held-out rows is better than all of its interval, or many rows are unlike those of training.
    Labels in the data set are not used: their scores are `actual`.
    """
    found = await services.plain.run(context.caller.share, context.registry.get, name, version)
    work = expected_scores(
        services.predictor,
        services.plain,
        context,
        found,
        dataset,
        prune=prune,
        level=level,
        rows=rows,
        seed=seed,
    )
    return _response(await or_disconnect(request, work), dataset, level, seed)


def _response(found: ExpectedScores, dataset: str, level: float, seed: int) -> ExpectedResponse:
    reasons = found.reasons
    return ExpectedResponse.model_validate(
        {
            "model": found.version.model,
            "version": found.version.version,
            "prune": found.prune,
            "dataset": dataset,
            "rows": found.rows,
            "dataset_rows": found.dataset_rows,
            "seed": seed,
            "level": level,
            "scores": {name: _score(one) for name, one in found.scores.items()},
            "unlike": found.unlike,
            "labelled_rows": found.labelled_rows,
            "alert": bool(reasons),
            "reasons": reasons,
            "notes": list(found.notes),
        }
    )


def _score(one: Expectation) -> dict[str, float | bool | None]:
    """The fields of a score; those that are not finite are null."""
    numbers = (one.expected, one.lower, one.upper, one.promised, one.actual)
    names = ("expected", "lower", "upper", "promised", "actual")
    finite = [v if v is not None and math.isfinite(v) else None for v in numbers]
    return dict(zip(names, finite, strict=True)) | {"leaves": one.leaves}
