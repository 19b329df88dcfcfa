"""The series as a table: where they began and ended, their slopes, and what leaks."""

from collections.abc import Mapping
from dataclasses import asdict

from benchmarks.results import markdown
from benchmarks.soak.observations import Series
from benchmarks.soak.slopes import Trend, trend

HISTORY = "database: history, MiB"  # grows by what was done
LEAST = {"MiB": 8.0, "threads": 2.0, "open files": 4.0, "ms": 2.0}  # in a day, never too much
QUANTILES = {"p50": 0.5, "p99": 0.99}


def trends(series: Series, warm_up: float) -> dict[str, Trend]:
    """Of each series after the warm-up; of latencies, of two quantiles."""
    found = {}
    for name, times in series.times.items():
        late = [(t, v) for t, v in zip(times, series.values[name], strict=True) if t >= warm_up]
        seconds, values = zip(*late, strict=True)
        if name.endswith(", ms"):
            for label, quantile in QUANTILES.items():
                found[f"{name.removesuffix(', ms')} {label}, ms"] = trend(seconds, values, quantile)
        else:
            found[name] = trend(seconds, values)
    return found


def leaks(found: Mapping[str, Trend], percent: float) -> list[str]:
    """Names of the series that grow by more than that in a day, for no reason."""
    return [
        name for name, one in found.items() if name != HISTORY and one.grows(percent, _least(name))
    ]


def table(found: Mapping[str, Trend], percent: float) -> str:
    """Markdown: a line for each series."""
    growing = leaks(found, percent)
    rows = [
        [
            name,
            f"{one.start:.1f}",
            f"{one.end:.1f}",
            f"{one.slope:+.2f} ({one.low:+.2f} to {one.high:+.2f})",
            "kept" if name == HISTORY else "yes" if name in growing else "no",
        ]
        for name, one in sorted(found.items())
    ]
    headers = ["what", "after the warm-up", "at the end", "slope per hour (99 %)", "grows"]
    return markdown(headers, rows)


def plain(found: Mapping[str, Trend]) -> dict[str, dict[str, float]]:
    """For the file of results."""
    return {name: asdict(one) for name, one in found.items()}


def _least(name: str) -> float:
    return next((least for unit, least in LEAST.items() if name.endswith(unit)), 0.0)
