"""Third chapter: the latency per number of samples, from the service's own histogram."""

from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families

from credence.client import Client
from credence.rendering import print_table
from credence.types import Json

HISTOGRAM = "credence_predict_latency_seconds"
SAMPLE_COUNTS = (1, 10, 100, 1000)
REQUESTS = 20


def run(client: Client, model: str, row: Json) -> None:
    """Predict one row many times per sample count, and read the mean latency from /metrics."""
    before = _totals(client, model)
    for samples in SAMPLE_COUNTS:
        for _ in range(REQUESTS):
            client.submit_predict({"model": model, "inputs": [row], "samples": samples})
    after = _totals(client, model)
    print(f"\nGET /metrics    {HISTOGRAM}, {REQUESTS} requests of one row each\n")
    lines = []
    for samples in SAMPLE_COUNTS:
        seconds, count = (
            now - then for now, then in zip(after[samples], before[samples], strict=True)
        )
        lines.append([samples, int(count), f"{1000 * seconds / count:.1f} ms"])
    print_table(["samples", "requests", "mean latency"], lines)


def _totals(client: Client, model: str) -> dict[int, tuple[float, float]]:
    """Seconds and requests so far, per sample count."""
    sums: dict[int, dict[str, float]] = defaultdict(lambda: {"_sum": 0.0, "_count": 0.0})
    for family in text_string_to_metric_families(client.metrics()):
        for sample in family.samples:
            suffix = sample.name.removeprefix(HISTOGRAM)
            if suffix in ("_sum", "_count") and sample.labels["model"] == model:
                sums[int(sample.labels["samples"])][suffix] += sample.value
    return {samples: (sums[samples]["_sum"], sums[samples]["_count"]) for samples in SAMPLE_COUNTS}
