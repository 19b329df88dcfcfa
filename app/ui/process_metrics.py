"""Latency, status counts and drift of this process, from the registry of `/metrics`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from prometheus_client import Metric

from app.metrics.metrics import Metrics
from app.ui.charts import Chart, line_chart

Buckets = dict[float, float]  # upper bound → number of values up to it
QUANTILES = (("median", 0.5), ("95th percentile", 0.95))


@dataclass(frozen=True)
class Drift:
    """The number of predicted rows of a model, and signs that they differ from its training rows.

    Args:
        epistemic_share: mean epistemic ÷ total variance of the rows.
        ood_share: share of the rows that are out of distribution.
    """

    model: str
    rows: int
    epistemic_share: float | None
    ood_share: float | None


def latency_chart(metrics: Metrics) -> Chart | None:
    """The latency by number of samples; None before the first prediction."""
    found = _buckets(metrics.predict_latency.collect(), "samples")
    counts = sorted(found, key=int)
    if not counts:
        return None
    lines = [
        (name, [float(n) for n in counts], [1e3 * quantile(found[n], q) for n in counts])
        for name, q in QUANTILES
    ]
    chart = line_chart(
        "latency",
        "Latency of predictions",
        "From the first byte of a request to its response, by number of samples. "
        "All requests since this process started, whatever their model and rows.",
        "samples (rounded up)",
        "milliseconds",
        lines,
    )
    for trace in chart.figure["data"]:
        trace["mode"] = "markers"  # requests of other models and rows: a line would compare them
    for axis in ("xaxis", "yaxis"):
        chart.figure["layout"][axis]["type"] = "log"
    return chart


def quantile(buckets: Buckets, share: float) -> float:
    """A quantile as in Prometheus: linear within a bucket, at most the last finite bound."""
    bounds = sorted(buckets)
    wanted = share * buckets[bounds[-1]]
    for low, high in pairwise([0.0, *bounds]):
        below, up_to = buckets.get(low, 0.0), buckets[high]
        if up_to >= wanted and up_to > below:
            inside = (wanted - below) / (up_to - below)
            return low if high == float("inf") else low + inside * (high - low)
    return bounds[-1]


def requests_by_status(metrics: Metrics) -> Mapping[str, int]:
    """Prediction requests by HTTP status."""
    counts: dict[str, int] = defaultdict(int)
    for sample in _samples(metrics.predict_requests.collect(), "_total"):
        counts[sample.labels["status"]] += int(sample.value)
    return dict(sorted(counts.items()))


def drift(metrics: Metrics) -> list[Drift]:
    """Drift by model, of the rows predicted since this process started."""
    shares = list(metrics.epistemic_share.collect())
    rows = {s.labels["model"]: int(s.value) for s in _samples(shares, "_count")}
    sums = {s.labels["model"]: s.value for s in _samples(shares, "_sum")}
    flagged = {
        s.labels["model"]: s.value
        for s in _samples(metrics.out_of_distribution_rows.collect(), "_total")
    }
    return [
        Drift(
            model,
            count,
            sums[model] / count if count else None,
            flagged.get(model, 0.0) / count if count else None,
        )
        for model, count in sorted(rows.items())
    ]


def _samples(families: Iterable[Metric], suffix: str) -> list:  # type: ignore[type-arg]
    return [s for family in families for s in family.samples if s.name.endswith(suffix)]


def _buckets(families: Iterable[Metric], label: str) -> dict[str, Buckets]:
    """Buckets by the values of one label, summed over the other labels."""
    found: dict[str, Buckets] = defaultdict(lambda: defaultdict(float))
    for sample in _samples(families, "_bucket"):
        found[sample.labels[label]][float(sample.labels["le"])] += sample.value
    return found
