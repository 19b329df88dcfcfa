"""The results as a table of Markdown, with a summary over the data sets."""

import statistics
from collections.abc import Iterable
from typing import Any

from benchmarks import results

Json = dict[str, Any]


def report(known: Iterable[Json]) -> str:
    """A line for each data set and cost, then means over the sets, in units of what is expected."""
    lines = [(found["name"], found["rows"], cost) for found in known for cost in found["costs"]]
    rows = [
        [
            name,
            str(count),
            cost["costs"],
            f"{cost['decisions']:.4g}",
            f"{cost['usual']:.4g}",
            f"{cost['decisions'] / cost['usual']:.2f}" if cost["usual"] else "",
            f"{cost['decisions'] / cost['expected']:.2f}" if cost["expected"] else "",
            f"{cost['cost_error'] / cost['expected']:.2f}" if cost["expected"] else "",
            f"{cost['asking'] / cost['asking_at_random']:.2f}",
        ]
        for name, count, cost in lines
    ]
    header = [
        "data", "rows", "costs", "decisions", "label or mean", "÷ label or mean", "÷ expected",
        "± of it", "asking ÷ at random",
    ]  # fmt: skip
    return "\n".join([results.markdown(header, rows), "", *_summary([c for _, _, c in lines])])


def _summary(costs: list[Json]) -> list[str]:
    told = []
    for name in dict.fromkeys(cost["costs"] for cost in costs):
        some = [c for c in costs if c["costs"] == name and c["expected"]]
        if not some:
            continue
        stated = statistics.mean(c["decisions"] / c["expected"] for c in some)
        usual = statistics.mean(c["usual"] / c["expected"] for c in some)
        worse = [c for c in some if c["decisions"] - c["usual"] > 2 * c["saved_error"]]
        told.append(
            f"{name}: × {stated / usual:.2f} of acting on label or mean, over {len(some)} data "
            f"sets, {len(worse)} worse by two standard errors; × {stated:.2f} of what was expected"
        )
    return told
