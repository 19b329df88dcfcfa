"""What labels say of the models, read from the database at each scrape: one row per version.

Every replica tells the same numbers: take the maximum over them. While the database is away they
are absent, rather than old.
"""

from collections.abc import Callable, Iterator, Sequence

import structlog
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from app.metrics.bounded_query import BoundedQuery
from core.exceptions import Unavailable
from core.predictions.feedback import Rolling

GAUGES = {  # by the end of their name: the metric, and what it is
    "log_likelihood": (
        "log_likelihood",
        "Mean log likelihood of the labelled rows in the window, in nats",
    ),
    "expected_log_likelihood": (
        "expected_log_likelihood",
        "The same on held-out rows, when the version was trained",
    ),
    "calibration_error": (
        "calibration_error",
        "Classes: ECE; numbers: mean |coverage − level| over the levels",
    ),
    "window_rows": ("rows", "Labelled rows in the window"),  # `rows` is what the counter is called
}

log = structlog.stdlib.get_logger(__name__)


class FeedbackCollector(Collector):
    """Gauges of each version that was labelled of late."""

    def __init__(self, read: Callable[[], Sequence[Rolling]]) -> None:
        self._inquiry = BoundedQuery(read)

    def describe(self) -> list[Metric]:
        return list(_families([]))

    def collect(self) -> Iterator[Metric]:
        try:
            windows = self._inquiry.answer()
        except (Unavailable, TimeoutError) as error:
            log.warning("labels are not told in /metrics", reason=str(error) or "no answer")
            windows = []
        yield from _families(windows)


def _families(windows: Sequence[Rolling]) -> Iterator[Metric]:
    """What is null, as of a forecast that runs away, has no sample."""
    coverage = GaugeMetricFamily(
        "credence_feedback_coverage",
        "Share of the labelled rows in the window inside the central interval of the level",
        labels=["model", "version", "level"],
    )
    for window in windows:
        for level, share in window.metrics.get("coverage", {}).items():
            coverage.add_metric([window.model, str(window.version), level], share)
    yield coverage
    for name, (metric, documentation) in GAUGES.items():
        labels = ["model", "version"]
        family = GaugeMetricFamily(f"credence_feedback_{name}", documentation, labels=labels)
        for window in windows:
            if (value := window.metrics.get(metric)) is not None:
                family.add_metric([window.model, str(window.version)], value)
        yield family
