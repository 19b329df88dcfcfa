"""Sends the deliveries of webhooks that are due."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from time import monotonic

import structlog

from core.context import Context
from core.process.periodic import Periodic
from core.webhooks.deliveries import Answer, Attempt, Deliveries
from core.webhooks.receivers import Rules
from core.webhooks.sending import send
from worker.metrics import WorkerMetrics

log = structlog.get_logger()

ROUND_SECONDS = 1.0
MAX_OWNERS = 8  # whose deliveries are sent at the same time, so that a slow receiver stops no other
TURN_SECONDS = 30.0  # of one owner, then others come first

Send = Callable[[Attempt, Rules], Answer]


class WebhookSender:
    """A thread that looks for owners with deliveries that are due, and a few that send them.

    Each owner has one thread, so that no owner's slow receivers delay those of another.
    """

    def __init__(self, context: Context, metrics: WorkerMetrics, send: Send = send) -> None:
        self._deliveries = Deliveries(context.database)
        self._rules, self._metrics, self._send = context.webhook_rules, metrics, send
        self._pool = ThreadPoolExecutor(MAX_OWNERS, "webhooks")
        self._served: set[str] = set()
        self._last_turns: dict[str, float] = {}
        self._lock = Lock()
        self._periodic = Periodic("sending webhooks", ROUND_SECONDS, self.look)
        self.start = self._periodic.start

    def stop(self) -> None:
        """Start no other try. One that is running ends within `sending.SECONDS`."""
        self._periodic.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def look(self) -> None:
        """Give each owner with deliveries that are due a thread, those first who waited longest."""
        owners = self._deliveries.due_owners()
        for owner in sorted(owners, key=lambda owner: self._last_turns.get(owner, 0.0)):
            with self._lock:
                if owner in self._served or len(self._served) >= MAX_OWNERS:
                    continue
                self._served.add(owner)
            self._pool.submit(self._serve, owner)

    def _serve(self, owner: str) -> None:
        """Send what is due, until nothing is, or the owner's turn is over."""
        end = monotonic() + TURN_SECONDS
        try:
            while not self._periodic.stopped.is_set() and monotonic() < end:
                attempt = self._deliveries.claim(owner)
                if attempt is None:
                    return
                self._try(attempt)
        except Exception as error:  # such as a database that is away; the next round tries again
            log.warning("sending webhooks failed", error=str(error))
        finally:
            with self._lock:
                self._served.discard(owner)
                self._last_turns[owner] = monotonic()

    def _try(self, attempt: Attempt) -> None:
        answer = self._send(attempt, self._rules)
        outcome = self._deliveries.record(attempt, answer)
        if outcome is None:
            return
        self._metrics.webhook_deliveries.labels(outcome.value).inc()
        log.info(
            "webhook delivery tried",
            webhook=attempt.webhook,
            delivery=attempt.delivery,
            outcome=outcome.value,
            status=answer.status,
            error=answer.error,
        )
