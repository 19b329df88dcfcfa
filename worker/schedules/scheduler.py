"""The thread of each worker that starts the runs of schedules that are due.

Celery's beat would be one more process, of which there must be exactly one, with due times of its
own. Here the database has the due times, and each worker may start a run (`core.schedules.starts`).
"""

import structlog

from core.context import Context
from core.exceptions import Unavailable
from core.process.periodic import Periodic
from worker.metrics import WorkerMetrics

log = structlog.get_logger()

SECONDS = 5.0  # a run starts this much late at most; the query reads an index


class Scheduler:
    """Starts due runs, and wakes a worker for each."""

    def __init__(self, context: Context, metrics: WorkerMetrics) -> None:
        self._context, self._metrics = context, metrics
        self._periodic = Periodic("starting schedules", SECONDS, self.run, at_once=True)
        self.start, self.stop = self._periodic.start, self._periodic.stop

    def run(self) -> None:
        """Start what is due now."""
        for job_id in self._context.starts.start_due():
            if job_id is None:
                self._metrics.schedule_runs.labels("failed").inc()
                continue
            try:
                self._context.queue.send(job_id)
            except Unavailable as error:
                log.warning("wake-up not sent: a sweep will send it", error=str(error))
