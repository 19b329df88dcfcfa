"""Decides whose request the engine computes next: callers share its time in equal parts.

Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996): each computation has a start in
virtual time, which is the end of the caller's last one, or the present virtual time if the caller
had nothing waiting. The caller with the least start is next. The present virtual time is the start
of the computation that began last. Two callers whose requests wait all the time get the same
seconds, to within one computation of each (theorem 1 of the paper). A caller that comes back to the
queue is not given the time that it did not use.

Large requests and small ones of a caller share the caller's time in the same way, so that small
ones do not wait for all slices of a large one. This module reads no clock.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

MAX_KNOWN = 4096  # flows that are remembered; all are forgotten whenever the engine is idle
RECENT_SECONDS = 1.0  # whoever came within this time is likely to come again


@dataclass(frozen=True)
class Arrival:
    """The virtual times of all callers and of one caller when a request came."""

    among_callers: float
    of_caller: float


class Request(Protocol):
    """What this module reads of a waiting request."""

    @property
    def caller(self) -> Hashable: ...
    @property
    def is_large(self) -> bool: ...
    @property
    def arrival(self) -> Arrival: ...


R = TypeVar("R", bound=Request)

Flow = tuple[Hashable, bool]  # a caller, and whether the requests are large


class Turns:
    """The virtual times of callers, and of each caller's large and small requests."""

    def __init__(self) -> None:
        self._now = 0.0
        self._now_of: dict[Hashable, float] = {}
        self._end: dict[Hashable, float] = {}  # of each caller's last computation
        self._end_of: dict[Flow, float] = {}
        self._came: dict[Flow, float] = {}  # when requests of a flow came last, in seconds

    def arrive(self, caller: Hashable, seconds: float, *, is_large: bool) -> Arrival:
        """The virtual times for a request that comes now."""
        if len(self._came) > MAX_KNOWN:
            self._came.clear()
        self._came[caller, is_large] = seconds
        return Arrival(self._now, self._now_of.get(caller, 0.0))

    def next(self, waiting: Iterable[R]) -> R | None:
        """The request to compute next; None if none waits.

        Args:
            waiting: oldest first.
        """
        heads: dict[Hashable, dict[bool, R]] = {}
        for request in waiting:
            heads.setdefault(request.caller, {}).setdefault(request.is_large, request)
        if not heads:
            return None
        oldest = {caller: next(iter(own.values())) for caller, own in heads.items()}
        caller = min(oldest, key=lambda one: self._start(oldest[one]))
        self._now = max(self._now, self._start(oldest[caller]))
        request = min(heads[caller].values(), key=self._start_of)
        self._now_of[caller] = max(self._now_of.get(caller, 0.0), self._start_of(request))
        return request

    def charge(self, request: Request, seconds: float) -> None:
        """Count the seconds that a request, or a slice of it, has taken."""
        flow = request.caller, request.is_large
        self._end[request.caller] = self._start(request) + seconds
        self._end_of[flow] = self._start_of(request) + seconds
        if len(self._end) > MAX_KNOWN:
            self.forget()

    def is_shared(self, request: Request, now: float) -> bool:
        """Whether requests of other callers, or small ones of this caller, came recently."""
        own = request.caller, request.is_large
        came = self._came.items()
        return any(flow != own and now - then < RECENT_SECONDS for flow, then in came)

    def forget(self) -> None:
        """Start again with equal times for all, as when no request waits."""
        self._now = max([self._now, *self._end.values()])
        for known in (self._now_of, self._end, self._end_of):
            known.clear()

    def _start(self, request: Request) -> float:
        return max(self._end.get(request.caller, 0.0), request.arrival.among_callers)

    def _start_of(self, request: Request) -> float:
        flow = request.caller, request.is_large
        return max(self._end_of.get(flow, 0.0), request.arrival.of_caller)
