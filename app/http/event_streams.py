"""A job's events as server-sent events: those that were, then those that come, until it has ended.

Streams that have seen the same events of a job wait for the same poll: a hundred of them ask the
database as often as one does, and where nobody listens nobody asks. A stream holds one page of
events and goes on when its client has taken it; it ends between two events, and whoever comes back
with `Last-Event-ID` misses none (HTML, §9.2: https://html.spec.whatwg.org/#server-sent-events).
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial

from anyio import CapacityLimiter, to_thread
from fastapi.sse import EventSourceResponse, format_sse_event
from starlette.types import Send

from app.schemas.jobs import EventResponse
from core.access.callers import Caller, View
from core.database.schema import EventRow
from core.exceptions import CredenceError, LimitReached, Unavailable
from core.jobs.jobs import FINAL, Jobs

POLL_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 15.0  # HTML, §9.2.7: some proxies drop what is silent for longer
KEEP_ALIVE = b": ping\n"  # no empty line after it: httpx-sse would make an event without data of it
RETRY_SECONDS = 15
PAGE_EVENTS = 100  # that a stream holds at most
MAX_STREAMS = 1000  # of one process; each is a connection and a page
MAX_OF_A_CALLER = 100  # so that one key leaves some to the others
READERS = 2  # threads of their own: streams must not wait for those of requests, nor they for these

Position = tuple[View, str, int]  # who sees which job, and the last of its events that was told


@dataclass(frozen=True)
class _Page:
    """Some events as they are sent, written once for all streams that wait for them."""

    told: bytes
    last: int
    is_end: bool  # nothing follows but what a resumed job will tell


@dataclass
class _Watch:
    """One poll, and how many streams wait for it."""

    poll: asyncio.Task[_Page]
    listeners: int = 0


class EventStreams:
    """The streams of one process; made inside its event loop."""

    def __init__(self) -> None:
        self._watches: dict[Position, _Watch] = {}
        self._ending: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers = CapacityLimiter(READERS)
        self._open: Counter[str] = Counter()  # by the key of who listens

    def check_room(self, caller: Caller) -> None:
        """Before a stream begins.

        Raises:
            LimitReached: the caller has as many as it should.
            Unavailable: there are as many as one process should hold.
        """
        if caller.key is not None and self._open[caller.key] >= MAX_OF_A_CALLER:
            message = f"{MAX_OF_A_CALLER} event streams are open with this key: end some"
            raise LimitReached(message, RETRY_SECONDS)
        if self._open.total() >= MAX_STREAMS:
            raise Unavailable(f"{MAX_STREAMS} event streams are open here: ask again, or for JSON")

    def end(self) -> None:
        """End all streams: the process stops, and clients go on at another."""
        if not self._ending.done():
            self._ending.set_result(None)

    async def tell(
        self, jobs: Jobs, job_id: str, after: int, identify: Callable[[], Caller]
    ) -> AsyncGenerator[bytes]:
        """The bytes of the stream that begins after an event.

        While the database is away it waits. It ends when `identify` raises, as for a key that is
        revoked, and when the job is no longer shared with who listens.
        """
        listener = identify().key or ""
        self._open[listener] += 1
        try:
            while True:
                page = await self._next(jobs, (identify().view, job_id, after))
                identify()
                if self._ending.done():
                    return
                if page is None:
                    yield KEEP_ALIVE
                    continue
                yield page.told
                if page.is_end:
                    return
                after = page.last
        except CredenceError:
            return
        finally:
            self._open[listener] -= 1

    async def _next(self, jobs: Jobs, position: Position) -> _Page | None:
        """What comes after the position, as soon as there is something; None if that takes long."""
        watch = self._watches.get(position)
        if watch is None:
            _, job_id, after = position
            read = partial(jobs.events, job_id, after, PAGE_EVENTS + 1)
            watch = self._watches[position] = _Watch(asyncio.create_task(self._poll(read)))
        watch.listeners += 1
        try:
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait(
                (watch.poll, self._ending), timeout=KEEP_ALIVE_SECONDS, return_when=first
            )
            return watch.poll.result() if watch.poll.done() else None
        finally:
            watch.listeners -= 1
            if not watch.listeners:
                watch.poll.cancel()
                del self._watches[position]

    async def _poll(self, read: Callable[[], Sequence[EventRow]]) -> _Page:
        while True:
            with suppress(Unavailable):
                found = await to_thread.run_sync(
                    read, limiter=self._readers, abandon_on_cancel=True
                )
                if found:
                    return _page(found)
            await asyncio.sleep(POLL_SECONDS)


class EventStreamResponse(EventSourceResponse):
    """Its events are let go of when the client is gone, wherever that is noticed."""

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        unbuffered = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, headers=unbuffered)
        self._events = events

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._events):
            await super().stream_response(send)


def _page(events: Sequence[EventRow]) -> _Page:
    """Of one event more than a page holds, if there are so many."""
    page = events[:PAGE_EVENTS]
    is_end = len(events) == len(page) and is_final(page[-1])
    return _Page(b"".join(map(_to_bytes, page)), page[-1].id, is_end)


def is_final(event: EventRow) -> bool:
    """Whether the job ended with this event; nothing follows it unless the job is resumed."""
    return event.type == "state" and event.data["status"] in FINAL


def _to_bytes(event: EventRow) -> bytes:
    """As in the JSON list; type and id stand beside the data, too, where clients look for them."""
    data = EventResponse.model_validate(event).model_dump_json()
    return format_sse_event(data_str=data, event=event.type, id=str(event.id))
