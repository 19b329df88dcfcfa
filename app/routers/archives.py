"""Export and import of a version's archive."""

import tempfile
from pathlib import Path
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from app.dependencies import ContextDep, ServicesDep
from app.examination import examined
from app.http.idempotency import CreatingRoute
from app.http.uploads import received
from app.openapi import binary_response, file_request, problems
from app.schemas.models import VersionResponse
from core.context import Context
from core.exceptions import NotFound, UnsupportedFormat
from core.names import check_alias, check_model_name
from core.process.disks import on_disk
from core.registry import archives, imports
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
    try:
        origin = imports.describe_origin(found)
        pieces = archives.pack(context.registry.path(found), origin, context.scratch.path)
    except FileNotFoundError:  # deleted just now
        raise NotFound("version", f"{found.model}/{found.version}") from None
    context.registry.exported(found)
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
    most, scratch = context.settings.max_body_bytes, context.scratch.path
    with services.writers.entered(context.caller.share) as threads:
        async with received(request, scratch, most, threads) as body:
            version = await to_thread.run_sync(
                publish_archive, context, name, alias, body.path, limiter=threads
            )
    response.headers["Location"] = f"/models/{name}/versions/{version.version}"
    return VersionResponse.model_validate(version)


def publish_archive(context: Context, name: str, alias: str | None, archive: Path) -> Version:
    """Unpack and check an archive, and publish it as a version."""
    with (
        on_disk("the archive"),
        tempfile.TemporaryDirectory(prefix="import-", dir=context.scratch.path) as folder,
    ):
        directory = Path(folder) / "artifact"
        archives.unpack(archive, directory, context.settings.max_body_bytes)
        description = examined(directory, name, context.memory, context.caller.share)
        return context.registry.add(name, directory, description, alias)
