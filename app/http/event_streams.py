"""A job's events as server-sent events: past ones, then new ones until the job has ended.

Streams that wait for the same event share one poll, so that a hundred streams read the database as
often as one. A stream keeps one page of events in memory, and reads the next page after the client
has received it. A stream ends between two events, so a client that reconnects with `Last-Event-ID`
misses none (HTML, §9.2: https://html.spec.whatwg.org/#server-sent-events).
"""

import asyncio
import resource
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial

from anyio import CapacityLimiter, to_thread
from fastapi.sse import EventSourceResponse, format_sse_event
from starlette.types import Send

from app.schemas.jobs import EventResponse
from core.access.callers import Caller, View
from core.exceptions import CredenceError, Unavailable
from core.jobs.events import Event
from core.jobs.jobs import FINAL, Jobs
from core.process.shared_bound import SharedBound

POLL_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 15.0  # HTML, §9.2.7: some proxies close connections that are silent for longer
KEEP_ALIVE = b": ping\n"  # with an empty line after it, httpx-sse would emit an event without data
RETRY_SECONDS = 15
PAGE_EVENTS = 100  # in the memory of one stream
MAX_STREAMS = 1000  # of one process, which callers share; each is a connection and a page
READERS = 2  # threads for streams alone, so that streams and requests do not delay each other

Position = tuple[View, str, int]  # the caller's view, the job, and the last event that was sent


@dataclass(frozen=True)
class _Page:
    """Events as bytes, for all streams that wait for them."""

    content: bytes
    last: int
    is_end: bool  # nothing follows unless the job is resumed


@dataclass
class _Poll:
    """A poll of the database, and the number of streams that wait for it."""

    task: asyncio.Task[_Page]
    listeners: int = 0


class EventStreams:
    """The streams of one process. Must be made inside its event loop."""

    def __init__(self) -> None:
        self._polls: dict[Position, _Poll] = {}
        self._ending: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers = CapacityLimiter(READERS)
        self._open = SharedBound(most_streams())

    def check_room(self, caller: Caller) -> None:
        """Check that another stream may start.

        Raises:
            Unavailable: all callers, or this one, have too many.
        """
        if not self._open.has_room(caller.share):
            raise Unavailable(
                f"{self._open.held} event streams are open here, {self._open.of(caller.share)} of "
                f"them yours, and {self._open.total} may be, which callers share: end some, or "
                "request JSON",
                RETRY_SECONDS,
            )

    def end(self) -> None:
        """End all streams, because the process stops. Clients reconnect to another process."""
        if not self._ending.done():
            self._ending.set_result(None)

    async def stream(
        self, jobs: Jobs, job_id: str, after: int, identify: Callable[[], Caller], share: str
    ) -> AsyncGenerator[bytes]:
        """The bytes of a stream, from the event after `after` on.

        The stream waits while the database does not answer. It ends early when the job is no longer
        shared with the caller.

        Args:
            identify: the caller. The stream ends when it raises, such as for a revoked key.
            share: whose share of the streams it takes, as `check_room` counted it.
        """
        self._open.change(share, 1)
        try:
            while True:
                page = await self._next(jobs, (identify().view, job_id, after))
                identify()
                if self._ending.done():
                    return
                if page is None:
                    yield KEEP_ALIVE
                    continue
                yield page.content
                if page.is_end:
                    return
                after = page.last
        except CredenceError:
            return
        finally:
            self._open.change(share, -1)

    async def _next(self, jobs: Jobs, position: Position) -> _Page | None:
        """The page after a position; None if there are no events within `KEEP_ALIVE_SECONDS`."""
        poll = self._polls.get(position)
        if poll is None:
            _, job_id, after = position
            read = partial(jobs.events, job_id, after, PAGE_EVENTS + 1)
            poll = self._polls[position] = _Poll(asyncio.create_task(self._poll(read)))
        poll.listeners += 1
        try:
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait(
                (poll.task, self._ending), timeout=KEEP_ALIVE_SECONDS, return_when=first
            )
            return poll.task.result() if poll.task.done() else None
        finally:
            poll.listeners -= 1
            if not poll.listeners:
                poll.task.cancel()
                del self._polls[position]

    async def _poll(self, read: Callable[[], Sequence[Event]]) -> _Page:
        while True:
            with suppress(Unavailable):
                page = await to_thread.run_sync(
                    _read_page, read, limiter=self._readers, abandon_on_cancel=True
                )
                if page is not None:
                    return page
            await asyncio.sleep(POLL_SECONDS)


def most_streams() -> int:
    """`MAX_STREAMS`, or half of the open files that the process may have: others connect, too."""
    return min(MAX_STREAMS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


class EventStreamResponse(EventSourceResponse):
    """A response that closes its generator when the client disconnects."""

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        unbuffered = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, headers=unbuffered)
        self._events = events

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._events):
            await super().stream_response(send)


def _read_page(read: Callable[[], Sequence[Event]]) -> _Page | None:
    """The page of the events that `read` returns, if there are any. For a thread."""
    events = read()
    return _page(events) if events else None


def _page(events: Sequence[Event]) -> _Page:
    """The page of the first `PAGE_EVENTS` events; one more event means that others follow."""
    page = events[:PAGE_EVENTS]
    is_end = len(events) == len(page) and is_final(page[-1])
    return _Page(b"".join(map(_to_bytes, page)), page[-1].id, is_end)


def is_final(event: Event) -> bool:
    """Whether the job ended with this event."""
    return event.type == "state" and event.data["status"] in FINAL


def _to_bytes(event: Event) -> bytes:
    """An event in the JSON of `GET /jobs/{id}/events`, with type and id as fields of the stream."""
    data = EventResponse.model_validate(event).model_dump_json()
    return format_sse_event(data_str=data, event=event.type, id=str(event.id))
