"""Holding a job: a thread renews the lease and listens for a cancellation."""

import threading
from contextvars import copy_context
from functools import partial
from types import TracebackType

import structlog
from sqlalchemy.exc import SQLAlchemyError

from core.context import Context
from core.exceptions import LostClaim, Unavailable
from core.jobs import Claim, JobStatus

log = structlog.get_logger()

_RENEW_SECONDS = 1.0  # how soon a cancellation is noticed


class Lease:
    """Renews a claim while its job runs.

    `interrupted` tells the job to stop at the next mini-batch: somebody cancelled it, or another
    worker has it now. A database that is away for a while is waited for: the lease may still hold.
    """

    def __init__(self, context: Context, claim: Claim) -> None:
        self._context, self._claim = context, claim
        self._ended, self._cancelled, self._lost = (threading.Event() for _ in range(3))
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
        return self._cancelled.is_set() or self._lost.is_set()

    def _renew_until_ended(self) -> None:
        while not self._ended.wait(_RENEW_SECONDS):
            try:
                self._renew()
            except LostClaim:
                self._lost.set()
                return
            except (SQLAlchemyError, Unavailable) as error:
                log.warning("lease not renewed", error=str(error))

    def _renew(self) -> None:
        lease_seconds = self._context.settings.lease_seconds
        status = self._context.jobs.heartbeat(self._claim, lease_seconds)
        if status is JobStatus.CANCELLING:
            self._cancelled.set()
