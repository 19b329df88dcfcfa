"""`/audit`: the audit log."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.dependencies import ContextDep, PagingDep
from app.http.large_answers import large_answer
from app.openapi import problems
from app.schemas.access import AuditResponse
from app.schemas.common import PageResponse

router = APIRouter(tags=["operation"])

Text = Annotated[str | None, Query(max_length=256)]


@router.get("/audit", response_model=PageResponse[AuditResponse], responses=problems(422, 503))
def list_audit(
    request: Request,
    context: ContextDep,
    paging: PagingDep,
    owner: Text = None,
    object: Text = None,
) -> Response:
    """Entries of the audit log, newest first, optionally of one owner or one object.

    An entry says what a caller created, changed, shared or deleted.
    """
    page = context.audit.list(owner=owner, object=object, limit=paging.limit, cursor=paging.cursor)
    return large_answer(request, PageResponse[AuditResponse].model_validate(page))
