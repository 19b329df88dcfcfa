"""`/v2`: the Open Inference Protocol, for clients of KServe or Triton.

Every path also exists with a slash at its end, because these clients do not follow redirects.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response

from app.dependencies import ContextDep, Services, ServicesDep, caller_of, or_disconnect
from app.http.bodies import check_json, media_type, read_inflated
from app.http.held_memory import held_by
from app.openapi import json_response, problems, request_bodies
from app.routers import health
from app.schemas.inference_protocol import (
    InferRequest,
    InferResponse,
    ModelMetadata,
    ModelReady,
    ServerLive,
    ServerMetadata,
    ServerReady,
)
from app.serving.inference_protocol import inputs, outputs
from app.serving.inference_protocol.messages import Reply, parameters_located, read_request
from core.access.callers import View
from core.context import Context
from core.exceptions import NotFound, NotParseable
from core.names import MODEL_NAME
from core.release import release
from models.model import TrainedModel

router = APIRouter(prefix="/v2", tags=["Open Inference Protocol v2"])

HEADER_LENGTH = "Inference-Header-Content-Length"
OCTETS = "application/octet-stream"
EXAMPLE = {
    "id": "42",
    "parameters": {"samples": 100, "seed": 7, "prune": 0.95},
    "inputs": [
        {"name": "x0", "shape": [2], "datatype": "FP64", "data": [540.0, 332.5]},
        {"name": "x1", "shape": [2], "datatype": "FP64", "data": [0.0, 142.5]},
    ],
    "outputs": [{"name": "mean"}, {"name": "epistemic_variance"}],
}
INFER: dict[str, Any] = {
    "response_class": Response,
    "responses": {
        200: json_response(InferResponse, "the outputs", OCTETS),
        **problems(400, 404, 413, 415, 422, 503),
    },
    "openapi_extra": {"requestBody": request_bodies(InferRequest, EXAMPLE, binary=(OCTETS,))},
}

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def _route(method: str, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
    """Register an endpoint for a path, also with a slash at its end."""

    def register(endpoint: Endpoint) -> Endpoint:
        router.add_api_route(path, endpoint, methods=[method], **options)
        options["include_in_schema"] = False
        router.add_api_route(f"{path}/", endpoint, methods=[method], **options)
        return endpoint

    return register


@_route("GET", "")
async def server() -> ServerMetadata:
    """The name of the server, its version and its extensions."""
    return ServerMetadata(version=release())


@_route("GET", "/health/live")
async def live() -> ServerLive:
    """The process responds."""
    return ServerLive()


@_route("GET", "/health/ready", responses=problems(503))
async def ready(services: ServicesDep) -> ServerReady:
    """The prediction engine makes progress."""
    await health.ready(services)
    return ServerReady()


@_route("GET", "/models/{model}", responses=problems(404, 503))
async def describe_newest(services: ServicesDep, context: ContextDep, model: str) -> ModelMetadata:
    """The tensors of a model's newest version, and the numbers of all versions."""
    return await _describe(services, context, model, None)


@_route("GET", "/models/{model}/versions/{version}", responses=problems(404, 503))
async def describe(
    services: ServicesDep, context: ContextDep, model: str, version: str
) -> ModelMetadata:
    """The tensors of a version, by number or alias, and the numbers of all versions."""
    return await _describe(services, context, model, version)


@_route("GET", "/models/{model}/ready", responses=problems(404, 503))
async def newest_ready(request: Request, services: ServicesDep, model: str) -> ModelReady:
    """The newest version exists. This request loads it."""
    await _load(services, caller_of(request).view, model, None)
    return ModelReady(name=model)


@_route("GET", "/models/{model}/versions/{version}/ready", responses=problems(404, 503))
async def version_ready(
    request: Request, services: ServicesDep, model: str, version: str
) -> ModelReady:
    """The version exists. This request loads it."""
    await _load(services, caller_of(request).view, model, version)
    return ModelReady(name=model)


@_route("POST", "/models/{model}/infer", **INFER)
async def infer_newest(request: Request, services: ServicesDep, model: str) -> Response:
    """Predict rows with the newest version: JSON tensors, or binary ones after the JSON."""
    return await _infer(request, services, model, None)


@_route("POST", "/models/{model}/versions/{version}/infer", **INFER)
async def infer(request: Request, services: ServicesDep, model: str, version: str) -> Response:
    """Predict rows with a version, by number or alias."""
    return await _infer(request, services, model, version)


async def _describe(
    services: Services, context: Context, model: str, version: str | None
) -> ModelMetadata:
    loaded = await _load(services, context.caller.view, model, version)
    versions = await services.plain.run(context.caller.share, context.registry.versions, model)
    return ModelMetadata(
        name=model,
        versions=[str(v.version) for v in versions],
        inputs=inputs.describe(loaded.inputs),
        outputs=outputs.describe(loaded),
    )


async def _infer(request: Request, services: Services, model: str, version: str | None) -> Response:
    with services.metrics.predict_request() as measure, parameters_located():
        _check_names(model, version)
        read = partial(read_request, model, version, _header_length(request))
        body = await read_inflated(request)
        held = held_by(request)
        work = services.predictor.respond(body, read, measure, caller_of(request), held)
        del body
        reply = await or_disconnect(request, work)
    return _response(reply)


async def _load(services: Services, view: View, model: str, version: str | None) -> TrainedModel:
    _check_names(model, version)
    resolved = await services.predictor.versions.find(view, model, version)
    return await services.predictor.cache.get(resolved)


def _check_names(model: str, version: str | None) -> None:
    """Raise `NotFound` for a name in the path that no model or version can have."""
    for kind, name in (("model", model), ("version", version)):
        if name is not None and not re.fullmatch(MODEL_NAME, name):
            raise NotFound(kind, name[:128])


def _header_length(request: Request) -> int | None:
    """The length of the JSON if binary data follow. Triton then sends no `Content-Type`."""
    length = request.headers.get(HEADER_LENGTH)
    if length is None:
        if media_type(request) != OCTETS:
            check_json(request)
        return None
    if not (length.isascii() and length.isdecimal() and len(length) <= 18):
        raise NotParseable(f"{HEADER_LENGTH} must be a number of bytes, not {length[:40]!r}")
    return int(length)


def _response(reply: Reply) -> Response:
    if reply.header_length is None:
        return Response(reply.body, media_type="application/json")
    headers = {HEADER_LENGTH: str(reply.header_length)}
    return Response(reply.body, headers=headers, media_type=OCTETS)
