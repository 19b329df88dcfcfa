"""Additions to FastAPI's `/openapi.json`: schemas of bodies, problems, keys.

Bodies are read by `app.http.bodies`, not by FastAPI, so it does not know their schemas.
"""

from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from app.access.required_scopes import required
from app.errors import MEDIA_TYPE
from app.http.idempotency import HEADER, MAX_LENGTH
from app.http.path_prefix import prefix
from app.schemas.access import SharingRequest
from app.schemas.card import CardResponse
from app.schemas.common import Problem
from app.schemas.compare import CompareRequest, CompareResponse
from app.schemas.datasets import ColumnsRequest, SourceRequest
from app.schemas.feedback import FeedbackRequest, FeedbackResponse
from app.schemas.inference_protocol import InferRequest, InferResponse
from app.schemas.models import AcquireRequest, AliasRequest, EvaluateRequest
from app.schemas.predictions import (
    BatchRequest,
    PredictRequest,
    PredictResponse,
    TextPredictResponse,
)
from app.schemas.schedules import ScheduleRequest
from app.schemas.training import TrainRequest
from app.schemas.webhooks import WebhookRequest
from core.access.keys import Scope

REFERENCE = "#/components/schemas/{model}"
KEY = "key"
KEY_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "made by `credence keys create`",
}
REQUESTS: tuple[type[BaseModel], ...] = (
    TrainRequest,
    AliasRequest,
    AcquireRequest,
    EvaluateRequest,
    PredictRequest,
    InferRequest,
    BatchRequest,
    CompareRequest,
    FeedbackRequest,
    ScheduleRequest,
    SharingRequest,
    ColumnsRequest,
    SourceRequest,
    WebhookRequest,
)
RESPONSES: tuple[type[BaseModel], ...] = (
    Problem,
    PredictResponse,
    TextPredictResponse,
    InferResponse,
    CompareResponse,
    FeedbackResponse,
    CardResponse,
)
CREATED = {"201", "202"}  # statuses of routes that create something
Document = dict[str, Any]


def problems(*statuses: int) -> dict[int | str, Document]:
    """Entries of a route's `responses` for problems of these statuses."""
    return {status: _problem(status) for status in statuses}


def json_request(model: type[BaseModel], example: Document) -> Document:
    """The `openapi_extra` of a route that reads its body with `app.http.bodies`."""
    return {"requestBody": request_bodies(model, example)}


def request_bodies(
    model: type[BaseModel], example: Document, *, binary: Iterable[str] = ()
) -> Document:
    """A body in JSON, or also in the media types `binary`."""
    content = {"application/json": {"schema": _reference(model), "example": example}}
    others = {key: value for name in binary for key, value in _binary(name).items()}
    return {"required": True, "content": others | content}


def file_request(media_types: list[str]) -> Document:
    """The `openapi_extra` of a route that takes a file as its body."""
    content = {key: value for name in media_types for key, value in _binary(name).items()}
    return {"requestBody": {"required": True, "content": content}}


def file_or_json_request(
    media_types: list[str], model: type[BaseModel], example: Document
) -> Document:
    """As `file_request`; JSON may also be an object of `model`."""
    request = file_request(media_types)
    request["requestBody"]["content"] |= {
        "application/json": {
            "schema": {"anyOf": [_reference(model), {"type": "array"}, {"type": "object"}]},
            "example": example,
        }
    }
    return request


def binary_response(media_type: str, description: str) -> Document:
    """An entry of `responses` for a file."""
    return {"description": description, "content": _binary(media_type)}


def option_parameters(model: Any, when: str) -> list[Document]:
    """The fields of a schema or dataclass as query parameters of a route that reads them itself.

    Args:
        when: the condition for a parameter, put before each description.
    """
    schema = TypeAdapter(model).json_schema(ref_template=REFERENCE)
    return [
        {
            "name": name,
            "in": "query",
            "description": "; ".join(filter(None, [when, member.get("description")])),
            "schema": {key: value for key, value in member.items() if key != "description"},
        }
        for name, member in schema["properties"].items()
    ]


def json_response(
    models: type[BaseModel] | tuple[type[BaseModel], ...], description: str, *binary: str
) -> Document:
    """An entry of `responses` for a response that FastAPI does not write.

    Args:
        models: one schema, or the alternative schemas.
        binary: other media types of the response.
    """
    schemas = [_reference(m) for m in (models if isinstance(models, tuple) else (models,))]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    content: Document = {"application/json": {"schema": schema}}
    for media_type in binary:
        content |= _binary(media_type)
    return {"description": description, "content": content}


def _binary(media_type: str | None) -> Document:
    content = {"schema": {"type": "string", "format": "binary"}}
    return {} if media_type is None else {media_type: content}


def install(app: FastAPI) -> None:
    """Make the application return the complete OpenAPI document, also as text."""

    def openapi() -> Document:
        if app.openapi_schema is None:
            app.openapi_schema = _describe(app)
        servers = {"servers": [{"url": prefix()}]} if prefix() else {}
        return app.openapi_schema | servers

    app.openapi = openapi  # type: ignore[method-assign]
    app.state.openapi_text = lru_cache(maxsize=4)(lambda _: orjson.dumps(openapi()))


def _describe(app: FastAPI) -> Document:
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
    )
    _, definitions = models_json_schema(
        [
            *((model, "validation") for model in REQUESTS),
            *((m, "serialization") for m in RESPONSES),
        ],
        ref_template=REFERENCE,
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas |= definitions["$defs"]
    document["components"]["securitySchemes"] = {KEY: KEY_SCHEME}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            responses = operation["responses"]
            if "422" in responses:
                responses["422"] = _problem(422)  # in place of FastAPI's own error
            _add_key(operation, required(method.upper(), path))
            if "requestBody" in operation:  # see `app.http.middleware.limit_bodies`
                responses |= {"408": _problem(408), "413": _problem(413)}
            if method == "post" and (path == "/predict" or CREATED & responses.keys()):
                _add_idempotency_key(operation)
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    return document


def _add_key(operation: Document, scope: Scope | None) -> None:
    """Document the key that the middleware checks."""
    if scope is None:
        return
    operation["security"] = [{KEY: []}]
    too_narrow = _problem(403) | {"description": f"the key's scope does not include `{scope}`"}
    operation["responses"] |= {"401": _problem(401), "403": too_narrow, "429": _problem(429)}


def _add_idempotency_key(operation: Document) -> None:
    """Document the header of `app.http.idempotency`. `/predict` uses it with `store`."""
    header = {
        "name": HEADER,
        "in": "header",
        "description": "the same request with the same key gets the stored response of the first",
        "schema": {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH},
    }
    operation.setdefault("parameters", []).append(header)


def _problem(status: int) -> Document:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {MEDIA_TYPE: {"schema": _reference(Problem)}},
    }


def _reference(model: type[BaseModel]) -> Document:
    return {"$ref": REFERENCE.format(model=model.__name__)}
