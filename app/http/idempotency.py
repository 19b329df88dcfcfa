"""`Idempotency-Key`: a route that makes something makes it once, however often its request comes.

The first answer stands in the transaction that made it (`core.access.idempotency`), and is given
again to
the same request: same caller, route, key and body. It is remembered for two days
(`CREDENCE_IDEMPOTENCY_HOURS`). What made nothing, such as a refusal, is not remembered.
"""

import hashlib
from collections.abc import Callable, Coroutine
from typing import Any

from anyio import to_thread
from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.types import Message

from app.dependencies import get_services, refuse_strange_parameters
from app.schemas.datasets import DatasetResponse
from app.schemas.jobs import JobResponse
from app.schemas.models import VersionResponse
from core.access.callers import Caller
from core.access.idempotency import HEADER, NO_ANSWER, Answer, Answers, Once, Remembered, Repeated
from core.datasets.datasets import Dataset
from core.exceptions import Invalid
from core.jobs.jobs import Job
from core.registry.registry import Version

MAX_LENGTH = 255
REPLAYED = "Idempotency-Replayed"
JSON = {"Content-Type": "application/json"}

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class CreatingRoute(APIRoute):
    """A route whose endpoint makes a job, a data set, a version or feedback."""

    def get_route_handler(self) -> Handler:
        return answered_once(super().get_route_handler())


def answered_once(handle: Handler) -> Handler:
    """The handler of a route, for requests that may come twice."""

    async def handle_once(request: Request) -> Response:
        if request.method != "POST":
            return await handle(request)
        await refuse_strange_parameters(request)  # before the path is looked up anywhere
        request, once = watched(request, write_answer)
        if once is None:
            return await handle(request)
        answers = (await get_services(request)).context.answers
        if found := await to_thread.run_sync(answers.find, once):
            async for _ in request.stream():  # all of it counts, though nobody reads it
                pass
            return _again(once, found)
        try:
            return await handle(request)
        except Repeated:
            return _again(once, await _found(answers, once))

    return handle_once


def watched(
    request: Request, write: Callable[[Any], Answer] = lambda made: NO_ANSWER
) -> tuple[Request, Once | None]:
    """The request with its body's hash taken as it is read, and the key that it came with.

    `write` tells what is answered to what was made.

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
    route = f"{request.method} {request.url.path}"
    once = Once(caller.key or caller.actor, route[:256], key, hashed.fingerprint, write)
    hashed.state.once = once
    return hashed, once


def write_answer(made: Job | Version | tuple[Dataset, bool]) -> Answer:
    """What the routes answer that queue a job, or take in a data set or a version."""
    if isinstance(made, Job):
        body = JobResponse.model_validate(made)
        return _answer(202, f"/jobs/{made.id}", body)
    if isinstance(made, Version):
        place = f"/models/{made.model}/versions/{made.version}"
        return _answer(201, place, VersionResponse.of(made))
    dataset, is_new = made
    told = DatasetResponse.model_validate(dataset)
    return _answer(201 if is_new else 200, f"/datasets/{dataset.id}", told)


def _answer(status: int, location: str, body: BaseModel) -> Answer:
    return Answer(status, JSON | {"Location": location}, body.model_dump_json().encode())


def _again(once: Once, found: Remembered) -> Response:
    found.check(once)
    answer = found.answer
    return Response(answer.body, answer.status, dict(answer.headers) | {REPLAYED: "true"})


async def _found(answers: Answers, once: Once) -> Remembered:
    found = await to_thread.run_sync(answers.find, once)
    assert found is not None, "who was faster has committed"
    return found


class _HashedRequest(Request):
    """A request that takes the SHA-256 of its query, of what its body is, and of its body while
    that is read.
    """

    def __init__(self, request: Request) -> None:
        said = (request.headers.get(name, "") for name in ("content-type", "content-encoding"))
        self._sha256 = hashlib.sha256("\n".join((request.url.query, *said, "")).encode())
        super().__init__(request.scope, self._hashing(request))

    def fingerprint(self) -> str:
        """Of what has been read so far: all of it, when something is made of it."""
        return self._sha256.hexdigest()

    def _hashing(self, request: Request) -> Callable[[], Coroutine[Any, Any, Message]]:
        async def receive() -> Message:
            message = await request.receive()
            self._sha256.update(message.get("body", b""))
            return message

        return receive
