"""Export and import of a version's archive."""

import tempfile
from pathlib import Path
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from app.dependencies import ContextDep, ServicesDep
from app.http.idempotency import CreatingRoute
from app.http.uploads import received
from app.openapi import binary_response, file_request, problems
from app.schemas.card import CardResponse
from app.schemas.models import VersionResponse
from app.ui.card.page import render_card
from core.clock import now
from core.context import Context
from core.exceptions import Invalid, UnsupportedFormat
from core.names import check_alias, check_model_name
from core.process.disks import on_disk
from core.registry import archives, cards, imports
from core.registry.imports import Imported
from core.registry.registry import Version

router = APIRouter(tags=["models"], route_class=CreatingRoute)

TAR = "application/x-tar"


@router.get(
    "/models/{name}/versions/{version}/archive",
    response_class=Response,
    responses={200: binary_response(TAR, "the version's files"), **problems(404, 503)},
)
def export_version(context: ContextDep, name: str, version: str) -> Response:
    """Export a version: a tar of its files (safetensors and JSON) with their SHA-256 sums."""
    found = context.registry.get(name, version)
    pieces = archives.pack(context.registry.path(found), imports.describe_origin(found))
    disposition = f'attachment; filename="{found.model}-{found.version}.tar"'
    return StreamingResponse(pieces, media_type=TAR, headers={"Content-Disposition": disposition})


@router.post(
    "/models/{name}/versions",
    status_code=201,
    responses=problems(400, 404, 413, 415, 422, 503),
    openapi_extra=file_request([TAR]),
)
async def import_version(  # noqa: PLR0917 - what FastAPI passes
    request: Request,
    response: Response,
    services: ServicesDep,
    context: ContextDep,
    name: str,
    alias: Annotated[str | None, Query(max_length=63)] = None,
) -> VersionResponse:
    """Import a version. Every file is checked before the version is published."""
    check_model_name(name, "name")
    if alias is not None:
        check_alias(alias, "alias")
    media_type = request.headers.get("content-type", "")
    if media_type.partition(";")[0].strip().lower() != TAR:
        raise UnsupportedFormat(f"send an archive, with Content-Type {TAR}")
    settings, writers = context.settings, services.writers
    async with received(request, context.scratch.path, settings.max_body_bytes, writers) as body:
        version = await to_thread.run_sync(
            publish_archive, context, name, alias, body.path, limiter=writers
        )
    response.headers["Location"] = f"/models/{name}/versions/{version.version}"
    return VersionResponse.model_validate(version)


def publish_archive(context: Context, name: str, alias: str | None, archive: Path) -> Version:
    """Unpack and check an archive, and publish it as a version."""
    with (
        on_disk("the archive"),
        tempfile.TemporaryDirectory(prefix="import-", dir=context.scratch.path) as folder,
    ):
        limit = context.settings.max_body_bytes
        imported = imports.read_archive(archive, Path(folder) / "artifact", limit)
        _check_shown(context, name, imported)
        return context.registry.add(name, imported.directory, imported.description, alias)


def _check_shown(context: Context, name: str, imported: Imported) -> None:
    """Raise `Invalid` if the version's response or its card cannot be rendered."""
    about = imported.description
    version = Version(
        model=name, owner="", version=1, aliases=(), description=about, dataset="", job="",
        created_at=now(), artifact_key="",
    )  # fmt: skip
    try:
        VersionResponse.model_validate(version).model_dump_json()
        card = CardResponse.model_validate(cards.compose(context, version, imported.card))
        render_card(card.model_dump(mode="json"))
    except Exception as error:  # of any type: metrics or card.json have a wrong form
        raise Invalid([("/card.json", f"is not a model card: {error!r}"[:500])]) from error
