"""`/ui/datasets`: the list of data sets with the upload, and the page of one data set."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep, PagingDep
from app.ui.column_charts import MOST_CHARTS, column_charts, sample_step
from app.ui.column_readings import column_rows
from app.ui.findings import finding_groups, mend_all, said
from app.ui.pages import show
from app.ui.reading import reading_fields, reading_sentence, upload_fields

router = APIRouter(include_in_schema=False)

FIRST_ROWS = 10
MOST_COLUMNS = 50  # of the table of first rows


@router.get("/ui/datasets")
def datasets(request: Request, context: ContextDep, paging: PagingDep) -> HTMLResponse:
    """The upload, and all data sets, newest first."""
    page = context.datasets.list(paging.limit, paging.cursor)
    changes = {one.id: said(one) for one in page.data}
    return show(
        request,
        "datasets.html",
        page=page,
        paging=paging,
        changes=changes,
        options=upload_fields(),
    )


@router.get("/ui/datasets/{dataset_id}")
def dataset(request: Request, context: ContextDep, dataset_id: str) -> HTMLResponse:
    """Findings with their fixes, columns with statistics and charts, and the first rows."""
    found = context.datasets.get(dataset_id)
    shown = [column.name for column in found.columns if column.type != "tensor"][:MOST_COLUMNS]
    return show(
        request,
        "dataset.html",
        dataset=found,
        groups=finding_groups(found.findings),
        all=mend_all(found.findings),
        said=said(found),
        sentence=reading_sentence(found),
        options=reading_fields(found.reading),
        columns=column_rows(found),
        charts=column_charts(context, found),
        most_charts=MOST_CHARTS,
        step=sample_step(found),
        names=shown,
        rows=context.datasets.rows(found.id, FIRST_ROWS, names=shown) if shown else [],
    )
