"""Takes back the jobs of lost workers."""

import structlog

from core.context import Context
from core.jobs.claims import Pulse
from core.process.watch import Watch
from core.telemetry import tracing

log = structlog.get_logger()


class Reaper:
    """Sees by its own steady clock which claims nobody renews; `look` often within a lease."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._watch: Watch[str, Pulse] = Watch(context.settings.lease_seconds)

    def look(self) -> None:
        """Take back what has stood still for a lease's time.

        Raises:
            Unavailable: and what was seen so far counts no more. While the database is away nobody
                renews anything, and each worker gets a lease's time to do so when it is back.
        """
        try:
            still = self._watch.unchanged(self._context.jobs.pulses())
            taken = self._context.jobs.reap(still, self._context.settings.max_attempts)
        except Exception:
            self._watch.forget()
            raise
        for job_id in taken:
            self._tell(job_id)

    def _tell(self, job_id: str) -> None:
        """The lost worker itself can tell nothing, neither to the log nor to the job's trace."""
        origin = self._context.jobs.get(job_id).origin
        with tracing.continued("worker lost", origin.traceparent, **{"credence.job.id": job_id}):
            log.warning("worker lost, job taken back", job_id=job_id, request_id=origin.request_id)
