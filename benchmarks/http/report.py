"""Tables of the turns: medians over the rounds, and ratios within each round."""

import math
from statistics import median
from typing import Any

from benchmarks.interleaving import ratio
from benchmarks.results import figure, markdown

OURS = "Credence"


def names(data: dict[str, Any]) -> list[str]:
    """The measured systems in the order in which they were started."""
    took = {turn["system"] for turn in data["turns"]}
    return [name for name in data["versions"] if name in took]


def over_rounds(data: dict[str, Any], system: str, *path: str) -> float | None:
    """The median of a value over the rounds; None if most rounds do not have it."""
    values = series(data, system, *path)
    found = median(values) if values else math.inf
    return None if math.isinf(found) else found


def series(data: dict[str, Any], system: str, *path: str) -> list[float]:
    """A value by round; infinite where it is None. Rounds without it are skipped.

    >>> series({"turns": [{"system": "a", "closed": {"1": {"p": None}}}]}, "a", "closed", "1", "p")
    [inf]
    """
    values = []
    for turn in data["turns"]:
        if turn["system"] == system:
            value = _at(turn, path)
            values += [] if value is _MISSING else [math.inf if value is None else value]
    return values


_MISSING = object()


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return _MISSING
        value = value[key]
    return value


def tables(data: dict[str, Any]) -> str:
    """Markdown: one line per server, then latency by offered rate."""
    absent = [f"{name}: {reason}" for name, reason in data["absent"].items()]
    return "\n\n".join([_overview(data), _by_rate(data), _lateness(data), *absent])


def _overview(data: dict[str, Any]) -> str:
    closed = [str(c) for c in data["settings"]["concurrencies"]]
    most = closed[-1]
    headers = ["server", "version", "1 client: p50 ms", "of it not computing", "idle, cores"]
    headers += [f"{c} clients: requests/s" for c in closed[1:]]
    headers += [f"ratio to {OURS}", f"{most} clients: p50", "p99", "failed"]
    rows = []
    for name in names(data):
        many = [figure(over_rounds(data, name, "closed", c, "throughput")) for c in closed[1:]]
        rows.append(
            [
                name,
                data["versions"][name],
                figure(over_rounds(data, name, "alone", "latency_ms")),
                figure(over_rounds(data, name, "alone", "overhead_ms")),
                figure(over_rounds(data, name, "idle_cores"), 2),
                *many,
                figure(_ratio(data, name, most), 2),
                figure(over_rounds(data, name, "closed", most, "milliseconds", "p50")),
                figure(over_rounds(data, name, "closed", most, "milliseconds", "p99")),
                _failed(data, name),
            ]
        )
    return markdown(headers, rows)


def _ratio(data: dict[str, Any], name: str, concurrency: str) -> float | None:
    path = ("closed", concurrency, "throughput")
    ours = series(data, OURS, *path)
    return ratio(series(data, name, *path), ours) if ours else None


def _failed(data: dict[str, Any], name: str) -> int:
    """The number of failed requests in the closed loops."""
    turns = [turn for turn in data["turns"] if turn["system"] == name]
    return sum(sum(s["failures"].values()) for turn in turns for s in turn["closed"].values())


def _by_rate(data: dict[str, Any]) -> str:
    """p50 / p95 / p99 in milliseconds."""
    systems = names(data)
    rates = [f"{rate:g}" for rate in sorted(data["settings"]["rates"])]
    rows = [[rate, *(_percentiles(data, name, rate) for name in systems)] for rate in rates]
    return markdown(["offered, requests/s: p50 / p95 / p99 ms", *systems], rows)


def _lateness(data: dict[str, Any]) -> str:
    """A sentence on the latency that the generator adds in the open loop."""
    runs = [summary["lateness_ms"] for turn in data["turns"] for summary in turn["open"].values()]
    return (
        f"The generator was late by {figure(median(runs or [0.0]), 2)} ms "
        "(99 % of the requests by less; median of the runs)."
    )


def _percentiles(data: dict[str, Any], name: str, rate: str) -> str:
    if not series(data, name, "open", rate, "throughput"):
        return "–"
    quantiles = ("p50", "p95", "p99")
    values = [over_rounds(data, name, "open", rate, "milliseconds", q) for q in quantiles]
    return " / ".join("∞" if value is None else figure(value, 2) for value in values)
