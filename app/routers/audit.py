"""`/audit`: the audit log."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.dependencies import ContextDep, PagingDep
from app.openapi import problems
from app.schemas.access import AuditResponse
from app.schemas.common import PageResponse

router = APIRouter(tags=["operation"])

Text = Annotated[str | None, Query(max_length=256)]


@router.get("/audit", responses=problems(422, 503))
def list_audit(
    context: ContextDep, paging: PagingDep, owner: Text = None, object: Text = None
) -> PageResponse[AuditResponse]:
    """Entries of the audit log, newest first, optionally of one owner or one object.

    An entry says what a caller created, changed, shared or deleted.
    """
    page = context.audit.list(owner=owner, object=object, limit=paging.limit, cursor=paging.cursor)
    return PageResponse[AuditResponse].model_validate(page)
