"""The results as a table of Markdown: by score, on random parts and on shifted ones."""

import statistics
from collections.abc import Iterable
from typing import Any

from benchmarks import results
from benchmarks.expected.compared import NAMES

Json = dict[str, Any]
RATIOS = ("rmse", "mae")  # whose distance is in percent of the actual score


def report(known: Iterable[Json]) -> str:
    """A line for each score and kind of part.

    `distance` is the mean |expected − actual|, `of the promise` the same of the score of the
    held-out rows; of errors in percent of the actual one.
    """
    every = [one for found in known for one in found["scores"]]
    rows = []
    for name in NAMES:
        for shift in (False, True):
            some = [one for one in every if one["score"] == name and one["shift"] == shift]
            if some:
                rows.append(_line(name, shift, some))
    header = [
        "score", "rows", "parts", "inside 90 %", "distance", "of the promise", "alerts",
    ]  # fmt: skip
    return results.markdown(header, rows)


def _line(name: str, shift: bool, some: list[Json]) -> list[str]:
    inside = statistics.mean(one["lower"] <= one["actual"] <= one["upper"] for one in some)
    distances = [
        statistics.mean(abs(one[key] - one["actual"]) / _unit(name, one) for one in some)
        for key in ("expected", "promised")
    ]
    unit = " %" if name in RATIOS else ""
    return [
        name,
        "outer quarters" if shift else "random",
        str(len(some)),
        f"{inside:.2f}",
        *(f"{distance:.3g}{unit}" for distance in distances),
        f"{statistics.mean(one['leaves'] for one in some):.2f}",
    ]


def _unit(name: str, one: Json) -> float:
    return one["actual"] / 100 if name in RATIOS else 1.0
