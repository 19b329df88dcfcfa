"""A job's events as server-sent events: those that were, then those that come, until it has ended.

Streams that have seen the same events of a job wait for the same poll: a hundred of them ask the
database as often as one does, and where nobody listens nobody asks. A stream holds one page of
events and goes on when its client has taken it; it ends between two events, and whoever comes back
with `Last-Event-ID` misses none (HTML, §9.2: https://html.spec.whatwg.org/#server-sent-events).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial

from anyio import CapacityLimiter, to_thread
from fastapi.sse import EventSourceResponse, format_sse_event
from starlette.types import Send

from app.schemas.jobs import EventResponse
from core.callers import Caller, View
from core.events import Event
from core.exceptions import CredenceError, Unavailable
from core.jobs import FINAL, Jobs

POLL_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 15.0  # HTML, §9.2.7: some proxies drop what is silent for longer
KEEP_ALIVE = b": ping\n"  # no empty line after it: httpx-sse would make an event without data of it
PAGE_EVENTS = 100  # that a stream holds at most
MAX_STREAMS = 1000  # of one process; each is a connection and a page
READERS = 2  # threads of their own: streams must not wait for those of requests, nor they for these

Position = tuple[View, str, int]  # who sees which job, and the last of its events that was told


@dataclass
class _Watch:
    """One poll, and how many streams wait for it."""

    poll: asyncio.Task[Sequence[Event]]
    listeners: int = 0


class EventStreams:
    """The streams of one process; made inside its event loop."""

    def __init__(self) -> None:
        self._watches: dict[Position, _Watch] = {}
        self._ending: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers = CapacityLimiter(READERS)
        self._open = 0

    def check_room(self) -> None:
        """Raise `Unavailable` when there are as many streams as one process should hold."""
        if self._open >= MAX_STREAMS:
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
        self._open += 1
        try:
            while True:
                events = await self._next(jobs, (identify().view, job_id, after))
                identify()
                if self._ending.done():
                    return
                if not events:
                    yield KEEP_ALIVE
                    continue
                page = events[:PAGE_EVENTS]
                yield b"".join(map(_to_bytes, page))
                if len(events) == len(page) and is_final(page[-1]):
                    return
                after = page[-1].id
        except CredenceError:
            return
        finally:
            self._open -= 1

    async def _next(self, jobs: Jobs, position: Position) -> Sequence[Event]:
        """The events after the position, as soon as there are any; none if that takes long."""
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
            return watch.poll.result() if watch.poll.done() else ()
        finally:
            watch.listeners -= 1
            if not watch.listeners:
                watch.poll.cancel()
                del self._watches[position]

    async def _poll(self, read: Callable[[], Sequence[Event]]) -> Sequence[Event]:
        while True:
            with suppress(Unavailable):
                found = await to_thread.run_sync(
                    read, limiter=self._readers, abandon_on_cancel=True
                )
                if found:
                    return found
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


def is_final(event: Event) -> bool:
    """Whether the job ended with this event; nothing follows it unless the job is resumed."""
    return event.type == "state" and event.data["status"] in FINAL


def _to_bytes(event: Event) -> bytes:
    """As in the JSON list; type and id stand beside the data, too, where clients look for them."""
    data = EventResponse.of(event).model_dump_json()
    return format_sse_event(data_str=data, event=event.type, id=str(event.id))
