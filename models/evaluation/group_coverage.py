"""The share of rows inside their intervals, of each group and of low, middle and high predictions.

Predictions are low or high by their mean or by their deviation.

A part of the rows is called uncovered if so few of them are inside the intervals as a part that is
covered with the level has with a probability of `CHANCE` ÷ number of parts at most (an exact
binomial test with Bonferroni's correction). So at most one version in twenty that keeps its promise
everywhere has an uncovered part.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from models.config import Json
from models.evaluation.exact_tests import binomial_up_to
from models.evaluation.weighting import Weights, mean, of_share, split_weights

LEVEL = 0.9
CHANCE = 0.05
GROUP, PREDICTED = "group", "predicted"  # entries of per-row scores: group's number, mean
KINDS = ("coverage", "conformal_coverage")
SIZES = ("low", "middle", "high")
UNCOVERED = {"group": "group", "size": "predictions", "deviation": "predicted deviations"}


def coverage_by_group(scores: Mapping[str, Tensor], column: str, names: Sequence[str]) -> Json:
    """The coverage of each group, as `coverage_by_group` of the metrics; {} without groups."""
    if GROUP not in scores:
        return {}
    rows, weights = split_weights(scores)
    masks = {name: rows[GROUP] == number for number, name in enumerate(names)}
    parts = _parts(rows, weights, masks)
    return {"coverage_by_group": {"column": column, "level": LEVEL, "parts": parts}}


def coverage_by_thirds(scores: Mapping[str, Tensor]) -> Json:
    """The coverage of each third of the predicted means and of the predicted deviations.

    They are `coverage_by_size` and `coverage_by_deviation` of the metrics.
    """
    if PREDICTED not in scores:
        return {}
    rows, weights = split_weights(scores)
    values = {"size": rows[PREDICTED], "deviation": rows["uncertainty"]}
    return {
        f"coverage_by_{by}": {"level": LEVEL, "parts": _thirds(rows, weights, of_rows)}
        for by, of_rows in values.items()
        if len(of_rows) >= len(SIZES)
    }


def _thirds(
    rows: Mapping[str, Tensor], weights: Weights, values: Float[Tensor, "rows"]
) -> list[Json]:
    """The parts with low, middle and high values."""
    thirds = values.argsort(stable=True).tensor_split(len(SIZES))
    places = torch.arange(len(values))
    masks = {name: torch.isin(places, t) for name, t in zip(SIZES, thirds, strict=True)}
    return [
        part | {"from": float(values[third].min()), "to": float(values[third].max())}
        for part, third in zip(_parts(rows, weights, masks), thirds, strict=True)
    ]


def uncovered(metrics: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each part that is not covered."""
    for by, of_thirds in UNCOVERED.items():
        coverage = metrics.get(f"coverage_by_{by}") or {}
        what = coverage.get("column", of_thirds)
        for part in coverage.get("parts", ()):
            if part["covered"] is False:
                kind = KINDS[-1] if KINDS[-1] in part else KINDS[0]
                yield (
                    f"{what} {part['name']!r} is not covered: {100 * part[kind]:.0f} % of "
                    f"{part['rows']} held-out rows are inside their "
                    f"{'conformal' if kind == KINDS[-1] else 'credible'} {100 * LEVEL:g} % "
                    f"intervals, which chance does not explain (p = {part['p_value']:.1g}, "
                    f"{len(coverage['parts'])} parts were tested)"
                )


def _parts(
    rows: Mapping[str, Tensor], weights: Weights, masks: Mapping[str, Bool[Tensor, "rows"]]
) -> list[Json]:
    """Of each part: rows, shares with standard errors, mean width, whether it is covered."""
    filled = sum(bool(mask.any()) for mask in masks.values())
    kinds = [kind for kind in KINDS if f"{kind}_{LEVEL:g}" in rows]
    width = "conformal_width" if KINDS[1] in kinds else "width"
    parts: list[Json] = []
    for name, mask in masks.items():
        count, w = int(mask.sum()), weights[mask]
        part: Json = {"name": name, "rows": count}
        for kind in kinds:
            inside = rows[f"{kind}_{LEVEL:g}"][mask].double()
            part[kind] = mean(inside, w) if count else None
            part[f"{kind}_error"] = of_share(inside, w)
        widths = rows[f"{width}_{LEVEL:g}"][mask]
        part["width"] = mean(widths, w) if count and bool(widths.isfinite().all()) else None
        p = binomial_up_to(int(inside.sum()), count, LEVEL) if count else None
        parts.append(part | {"p_value": p, "covered": None if p is None else p * filled > CHANCE})
    return parts
