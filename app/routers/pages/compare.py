"""`/ui/compare`: versions side by side, and comparisons of methods on the same rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep
from app.schemas.compare import USUAL
from app.ui.charts import Cell, Table
from app.ui.comparison import method_table
from app.ui.findings import reasons
from app.ui.labels import METHODS
from app.ui.pages import show
from app.ui.scores import Scored, comparison_charts, headline, score_table
from core.context import Context
from core.database.schema import Json
from core.datasets.dataset import Dataset
from core.exceptions import NotFound
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
    pruned: Annotated[bool, Query()] = False,
) -> HTMLResponse:
    """The page.

    Args:
        versions: the chosen variants, as model/version/pruned share, separated by commas.
        pruned: whether the table offers pruned variants; chosen ones are always shown.
    """
    datasets = context.datasets.list(limit=MOST).data
    every = _offered(context, {d.id: d.name for d in datasets})
    chosen = set(versions.split(","))
    offered = [one for one in every if pruned or one.is_full or one.scored.key in chosen]
    groups = []
    for number, ((target, task), some) in enumerate(groupby(every, lambda one: one.group)):
        picked = [one.scored for one in some if one.scored.key in chosen]
        if picked:
            groups.append(_compared(f"group-{number}", target, task, picked))
    jobs = [job for job in context.jobs.list(limit=MOST).data if job.kind == "compare"]
    return show(
        request,
        "compare.html",
        offered=offered,
        with_pruned=pruned,
        has_pruned=len(offered) < len(every),
        chosen=chosen,
        groups=groups,
        datasets=datasets,
        columns={d.id: _columns(d, every) for d in datasets},
        methods={kind: name for kind, (name, _) in METHODS.items()},
        usual=USUAL,
        comparisons=[(job, _table(context, job)) for job in jobs[:MOST_COMPARISONS]],
        most_versions=MOST_VERSIONS,
    )


def _columns(dataset: Dataset, every: Sequence["Offered"]) -> Json:
    """The columns of a data set, and the one to predict that is proposed.

    It is the target of a version that was trained on the data set, else the last used column.
    """
    names = [column.name for column in dataset.columns]
    known = [
        one.target for one in every if one.scored.dataset == dataset.id and one.target in names
    ]
    used = [name for name in names if name not in reasons(dataset)]
    target = next(iter(known), None) or (used or names)[-1]
    return {"name": dataset.name, "columns": names, "target": target}


@dataclass(frozen=True)
class Offered:
    """A row of the table: a variant of a version, and what it comes from.

    Args:
        data: the name of its data set; None if it is deleted.
        main: label and value of its main score.
        seconds: how long it was trained; None if the job is not known.
    """

    scored: Scored
    target: str
    task: str
    aliases: Sequence[str]
    created: datetime
    data: str | None
    main: tuple[str, Cell] | None
    seconds: float | None

    @property
    def is_full(self) -> bool:
        return self.scored.variant["prune"] == 0

    @property
    def group(self) -> Target:
        """Only scores of the same target can be compared."""
        return self.target, self.task


def _offered(context: Context, names: Mapping[str, str]) -> list[Offered]:
    """Every variant of the newest versions, by target and task.

    Args:
        names: of data sets by their ids.
    """
    found: list[Offered] = []
    for newest in context.registry.list(limit=MOST).data:
        for version in context.registry.versions(newest.model)[:MOST_VERSIONS]:
            found += _variants(context, version, names)
    return sorted(found, key=lambda one: one.group)


def _variants(context: Context, version: Version, names: Mapping[str, str]) -> Iterator[Offered]:
    seconds = _seconds(context, version)
    for variant in version.description["variants"]:
        main = headline(variant["metrics"])
        yield Offered(
            scored=Scored(version.model, version.version, variant, version.dataset),
            target=version.description["target"],
            task=version.description["task"],
            aliases=version.aliases if variant["prune"] == 0 else (),
            created=version.created_at,
            data=names.get(version.dataset),
            main=main[0] if main else None,
            seconds=seconds,
        )


def _seconds(context: Context, version: Version) -> float | None:
    """The duration of the training's last attempt; None if its job is not known here."""
    try:
        job = context.jobs.get(version.job)
    except NotFound:
        return None
    if job.started_at is None or job.finished_at is None:
        return None
    return (job.finished_at - job.started_at).total_seconds()


def _compared(name: str, target: str, task: str, scored: Sequence[Scored]) -> Json:
    is_same_data = len({s.dataset for s in scored}) == 1
    headers, scores = score_table([s.variant["metrics"] for s in scored], is_same_data=is_same_data)
    return {
        "name": name,
        "target": target,
        "task": task,
        "headers": headers,
        "rows": list(zip(scored, scores, strict=True)),
        "is_same_data": is_same_data,
        "charts": comparison_charts(name, scored),
    }


def _table(context: Context, job: Job) -> Table | None:
    if job.status not in FINAL:
        return None
    return method_table(comparison.table(context.jobs, job.id, context.row_scores))
