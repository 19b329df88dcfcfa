"""`/ui/compare`: versions side by side, and comparisons of methods on the same rows."""

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep
from app.schemas.compare import USUAL
from app.ui.charts import Table
from app.ui.comparison import method_table
from app.ui.labels import METHODS
from app.ui.pages import show
from app.ui.scores import Scored, comparison_charts, score_table
from core.context import Context
from core.database.schema import Json
from core.jobs import comparison
from core.jobs.jobs import FINAL, Job
from core.registry.registry import Version

router = APIRouter(include_in_schema=False)

MOST = 100  # models, data sets and jobs on the page
MOST_VERSIONS = 10  # of each model
MOST_COMPARISONS = 5
Target = tuple[str, str]  # its column and the task


@router.get("/ui/compare")
def compare(
    request: Request,
    context: ContextDep,
    versions: Annotated[str, Query(max_length=4096)] = "",
) -> HTMLResponse:
    """The page.

    Args:
        versions: the chosen variants, as model/version/pruned share, separated by commas.
    """
    offered = _offered(context)
    chosen = set(versions.split(","))
    groups = []
    for number, ((target, task), scored) in enumerate(offered):
        picked = [s for s in scored if s.key in chosen]
        if picked:
            groups.append(_compared(f"group-{number}", target, task, picked))
    datasets = context.datasets.list(limit=MOST).data
    jobs = [job for job in context.jobs.list(limit=MOST).data if job.kind == "compare"]
    return show(
        request,
        "compare.html",
        offered=offered,
        chosen=chosen,
        groups=groups,
        datasets=datasets,
        columns={d.id: {"name": d.name, "columns": [c.name for c in d.columns]} for d in datasets},
        methods={kind: name for kind, (name, _) in METHODS.items()},
        usual=USUAL,
        comparisons=[(job, _table(context, job)) for job in jobs[:MOST_COMPARISONS]],
        most_versions=MOST_VERSIONS,
    )


def _offered(context: Context) -> list[tuple[Target, list[Scored]]]:
    """Every variant of the newest versions, grouped by target and task."""
    found: list[tuple[Target, Scored]] = []
    for newest in context.registry.list(limit=MOST).data:
        for version in context.registry.versions(newest.model)[:MOST_VERSIONS]:
            found += [(_target(version), scored) for scored in _scored(version)]
    found.sort(key=lambda pair: pair[0])
    return [(key, [s for _, s in pairs]) for key, pairs in groupby(found, lambda pair: pair[0])]


def _target(version: Version) -> Target:
    return version.description["target"], version.description["task"]


def _scored(version: Version) -> list[Scored]:
    return [
        Scored(version.model, version.version, variant, version.dataset)
        for variant in version.description["variants"]
    ]


def _compared(name: str, target: str, task: str, scored: Sequence[Scored]) -> Json:
    headers, scores = score_table([s.variant["metrics"] for s in scored])
    return {
        "name": name,
        "target": target,
        "task": task,
        "headers": headers,
        "rows": list(zip(scored, scores, strict=True)),
        "is_same_data": len({s.dataset for s in scored}) == 1,
        "charts": comparison_charts(name, scored),
    }


def _table(context: Context, job: Job) -> Table | None:
    if job.status not in FINAL:
        return None
    return method_table(comparison.table(context.jobs, job.id, context.row_scores))
