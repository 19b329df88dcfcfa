"""The lease of a running job. A thread renews it, and checks cancellation and limits."""

from core.context import Context
from core.exceptions import LostClaim
from core.jobs.jobs import Claim, JobStatus
from core.process.periodic import Periodic
from worker.limits import Limits, OverLimit

_RENEW_SECONDS = 1.0  # how soon a cancellation or an exceeded limit is noticed


class Lease:
    """A context manager that renews a claim while its job runs.

    While the database is away, it keeps trying, because the lease may still be valid.
    """

    def __init__(self, context: Context, claim: Claim) -> None:
        self._context, self._claim = context, claim
        self._limits = Limits(context.settings)
        self._renewals = Periodic("lease renewal", _RENEW_SECONDS, self._renew)
        self._lost = False
        self.cancelled = False
        self.over_limit: OverLimit | None = None

    def __enter__(self) -> "Lease":
        self._renewals.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._renewals.stop()

    @property
    def interrupted(self) -> bool:
        """Whether the job must stop after its mini-batch: it was cancelled, another worker took it
        over, or it exceeds a limit.
        """
        return self.cancelled or self._lost or self.over_limit is not None

    def _renew(self) -> None:
        if self._lost:
            return
        try:
            status = self._context.jobs.heartbeat(self._claim, self._context.settings.lease_seconds)
        except LostClaim:
            self._lost = True
            return
        self.cancelled = self.cancelled or status is JobStatus.CANCELLING
        self.over_limit = self.over_limit or self._limits.exceeded()
