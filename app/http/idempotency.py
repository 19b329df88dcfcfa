"""`Idempotency-Key`: a repeated request gets the first response, and creates nothing again.

Two requests are the same if caller, route, key and body are equal. The response is stored in the
transaction that creates the object (`core.access.idempotency`), for `CREDENCE_IDEMPOTENCY_HOURS`.
The response of a request that creates nothing, such as a refused one, is not stored.
"""

import hashlib
from collections.abc import Callable, Coroutine
from typing import Any

from anyio import to_thread
from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.types import Message

from app.dependencies import caller_of, check_parameters, get_services
from app.schemas.datasets import DatasetResponse
from app.schemas.jobs import JobResponse
from app.schemas.models import VersionResponse
from app.schemas.schedules import RunResponse, ScheduleResponse
from app.schemas.webhooks import NewWebhookResponse
from core.access.callers import Caller
from core.access.idempotency import (
    NO_REPLY,
    AlreadyCompleted,
    Completed,
    IdempotentOperation,
    Reply,
)
from core.datasets.dataset import Dataset
from core.exceptions import Invalid
from core.jobs.jobs import Job
from core.registry.registry import Version
from core.schedules.records import Run, Schedule
from core.webhooks.webhooks import NewWebhook

HEADER = "Idempotency-Key"
MAX_LENGTH = 255
REPLAYED = "Idempotency-Replayed"
JSON = {"Content-Type": "application/json"}

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class CreatingRoute(APIRoute):
    """A route whose `POST` creates a job, a data set, a version, a webhook or feedback."""

    def get_route_handler(self) -> Handler:
        return idempotent(super().get_route_handler())


def idempotent(handle: Handler) -> Handler:
    """A handler that returns the stored response of the same request, if there is one."""

    async def handle_once(request: Request) -> Response:
        if request.method != "POST":
            return await handle(request)
        await check_parameters(request)  # the path goes into a query: no control characters
        request, operation = with_idempotency_key(request, write_reply)
        if operation is None:
            return await handle(request)
        services = await get_services(request)
        find, share = services.context.replies.find, caller_of(request).share
        if completed := await services.plain.run(share, find, operation):
            async for _ in request.stream():  # the fingerprint needs the whole body
                pass
            return _replay(operation, completed)
        try:
            return await handle(request)
        except AlreadyCompleted:
            # Not in the caller's threads: a plain route keeps its turn until this function returns,
            # and all who have one would wait for another.
            completed = await to_thread.run_sync(find, operation)
            assert completed is not None, "the other request has committed"
            return _replay(operation, completed)

    return handle_once


def with_idempotency_key(
    request: Request, reply: Callable[[Any], Reply] = lambda made: NO_REPLY
) -> tuple[Request, IdempotentOperation | None]:
    """A request that hashes its body while it is read; its operation, if it has a key.

    Args:
        reply: the response for the object that the request has created.

    Raises:
        Invalid: the key is empty, too long, or not printable ASCII.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return request, None
    if not (0 < len(key) <= MAX_LENGTH and key.isascii() and key.isprintable()):
        message = f"must have 1 to {MAX_LENGTH} printable ASCII characters, such as a UUID"
        raise Invalid([(HEADER, message)])
    hashed = _HashedRequest(request)
    caller: Caller = request.state.caller
    route = f"{request.method} {request.url.path}"[:256]
    owner = caller.key or caller.actor
    hashed.state.operation = IdempotentOperation(owner, route, key, hashed.fingerprint, reply)
    return hashed, hashed.state.operation


def write_reply(made: Job | Version | Schedule | Run | NewWebhook | tuple[Dataset, bool]) -> Reply:
    """The response of a route that creates one of these.

    Args:
        made: the object; for a data set, also whether it is new.
    """
    if isinstance(made, Job):
        return _reply(202, f"/jobs/{made.id}", JobResponse.model_validate(made))
    if isinstance(made, Version):
        location = f"/models/{made.model}/versions/{made.version}"
        return _reply(201, location, VersionResponse.model_validate(made))
    if isinstance(made, Schedule):
        return _reply(201, f"/schedules/{made.name}", ScheduleResponse.model_validate(made))
    if isinstance(made, Run):
        return _reply(202, f"/jobs/{made.job}", RunResponse.model_validate(made))
    if isinstance(made, NewWebhook):
        return _reply(201, f"/webhooks/{made.id}", NewWebhookResponse.model_validate(made))
    dataset, is_new = made
    body = DatasetResponse.model_validate(dataset)
    return _reply(201 if is_new else 200, f"/datasets/{dataset.id}", body)


def _reply(status: int, location: str, body: BaseModel) -> Reply:
    return Reply(status, JSON | {"Location": location}, body.model_dump_json().encode())


def _replay(operation: IdempotentOperation, completed: Completed) -> Response:
    completed.check(operation)
    reply = completed.reply
    return Response(reply.body, reply.status, dict(reply.headers) | {REPLAYED: "true"})


class _HashedRequest(Request):
    """A request that hashes its query, type, encoding and body while it is read."""

    def __init__(self, request: Request) -> None:
        kinds = (request.headers.get(name, "") for name in ("content-type", "content-encoding"))
        self._sha256 = hashlib.sha256("\n".join((request.url.query, *kinds, "")).encode())
        super().__init__(request.scope, self._hashing(request))

    def fingerprint(self) -> str:
        """The hash of the bytes that have been read so far."""
        return self._sha256.hexdigest()

    def _hashing(self, request: Request) -> Callable[[], Coroutine[Any, Any, Message]]:
        async def receive() -> Message:
            message = await request.receive()
            self._sha256.update(message.get("body", b""))
            return message

        return receive
