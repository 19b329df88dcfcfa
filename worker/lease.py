"""Holding a job: a thread renews the lease, listens for a cancellation and watches the limits."""

import threading
from contextvars import copy_context
from functools import partial
from types import TracebackType

import structlog

from core.context import Context
from core.exceptions import LostClaim
from core.jobs.jobs import Claim, JobStatus
from worker.limits import Limits, OverLimit

log = structlog.get_logger()

_RENEW_SECONDS = 1.0  # how soon a cancellation, or too much memory, is noticed


class Lease:
    """Renews a claim while its job runs.

    `interrupted` tells the job to stop at the next mini-batch: somebody cancelled it, another
    worker has it now, or it is over a limit. A database that is away for a while is waited for: the
    lease may still hold.
    """

    def __init__(self, context: Context, claim: Claim) -> None:
        self._context, self._claim = context, claim
        self._ended, self._cancelled, self._lost = (threading.Event() for _ in range(3))
        self._limits = Limits(context.settings)
        self.over_limit: OverLimit | None = None
        run = partial(copy_context().run, self._renew_until_ended)  # its lines belong to the job
        self._thread = threading.Thread(target=run, name="lease", daemon=True)

    def __enter__(self) -> "Lease":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    @property
    def interrupted(self) -> bool:
        return self._cancelled.is_set() or self._lost.is_set() or self.over_limit is not None

    def _renew_until_ended(self) -> None:
        while not self._ended.wait(_RENEW_SECONDS):
            try:
                self._renew()
                self.over_limit = self.over_limit or self._limits.exceeded()
            except LostClaim:
                self._lost.set()
                return
            except Exception as error:  # whatever it is, the next second may be better
                log.warning("lease not renewed", error=str(error))

    def _renew(self) -> None:
        lease_seconds = self._context.settings.lease_seconds
        status = self._context.jobs.heartbeat(self._claim, lease_seconds)
        if status is JobStatus.CANCELLING:
            self._cancelled.set()
