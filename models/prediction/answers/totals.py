"""The sum of a forecast from its first step to each step: what is needed until then in all."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from models.evaluation.calibration import Calibration
from models.prediction.answers.answer import Answer, Arrays, Classes, Question
from models.prediction.answers.exceeds import Exceedance
from models.prediction.answers.quantiles import Quantiles
from models.prediction.options import BatchOptions, ResolvedOptions
from models.prediction.predictive import Mixture

TOTAL = "total_"  # begins the names of columns, tensors and errors
STEPS, SUMS = "steps", "sums"  # of sums over series; they begin names in the summary
SERIES, GROUPS = "series", "groups"  # before them: over all series, over groups
GROUP = "group"  # the column with the names of groups, whose rows come after those of the series

PerLevel = Float[np.ndarray, "rows levels"]


@dataclass(frozen=True)
class TotalsAnswer(Answer):
    """Of the sum over the steps up to each one, in units of the target.

    Args:
        levels: of the intervals.
        lower, upper: bounds of credible intervals; None if they were not asked for.
        conformal_lower, conformal_upper: infinite if too few sums were observed.
        mc_error: of the mean.
        p: the probabilities of `quantiles`.
        exceeds: the probability that the sum is above each of the thresholds.
        series_steps, series_sums: of the sum over all series, of each step and up to each; None if
            it was not asked for. Their rows are the steps.
        groups: of the sums over groups of series; None if none were asked for.
    """

    levels: tuple[float, ...]
    p: tuple[float, ...]
    thresholds: tuple[float, ...]
    mean: Float[np.ndarray, "rows"]
    median: Float[np.ndarray, "rows"]
    deviation: Float[np.ndarray, "rows"]
    mc_error: Float[np.ndarray, "rows"] | None
    lower: PerLevel | None
    upper: PerLevel | None
    conformal_lower: PerLevel | None
    conformal_upper: PerLevel | None
    quantiles: Float[np.ndarray, "rows p"]
    exceeds: Float[np.ndarray, "rows thresholds"]
    series_steps: "TotalsAnswer | None" = None
    series_sums: "TotalsAnswer | None" = None
    groups: "GroupTotals | None" = None

    @property
    def _bounds(self) -> list[tuple[str, PerLevel, PerLevel]]:
        """Kind and bounds of the intervals that there are."""
        of_kind = {
            "credible": (self.lower, self.upper),
            "conformal": (self.conformal_lower, self.conformal_upper),
        }
        return [(k, *ends) for k, ends in of_kind.items() if ends[0] is not None]  # type: ignore[misc]

    def document(self) -> dict[str, Any]:
        intervals = [
            {
                "level": level,
                "kind": kind,
                "lower": np.ascontiguousarray(lower[:, i]),
                "upper": np.ascontiguousarray(upper[:, i]),
            }
            for kind, lower, upper in self._bounds
            for i, level in enumerate(self.levels)
        ]
        found: dict[str, Any] = {
            "mean": self.mean,
            "median": self.median,
            "deviation": self.deviation,
            "mc_error": self.mc_error,
            "intervals": intervals,
        }
        if self.p:
            found["quantiles"] = Quantiles(self.p, self.quantiles).document()
        if self.thresholds:
            found["exceeds"] = Exceedance(self.thresholds, self.exceeds).document()
        if self.series_steps is not None and self.series_sums is not None:
            each, sums = self.series_steps.document(), self.series_sums.document()
            found["series"] = {"steps": each, "sums": sums}
        if self.groups is not None:
            found["groups"] = self.groups.document()
        return found

    def columns(self) -> dict[str, np.ndarray]:
        found = {"mean": self.mean, "median": self.median, "mc_error": self._error_or_nan}
        found["deviation"] = self.deviation
        for kind, lower, upper in self._bounds:
            prefix = "" if kind == "credible" else f"{kind}_"
            for i, level in enumerate(self.levels):
                found[f"{prefix}lower_{level}"] = lower[:, i]
                found[f"{prefix}upper_{level}"] = upper[:, i]
        found |= Quantiles(self.p, self.quantiles).columns()
        found |= Exceedance(self.thresholds, self.exceeds).columns()
        return {f"{TOTAL}{name}": values for name, values in found.items()} | self._of_series()

    @property
    def _error_or_nan(self) -> np.ndarray:
        return np.full_like(self.mean, np.nan) if self.mc_error is None else self.mc_error

    def rows_below(self) -> dict[str, Any]:
        return {} if self.groups is None else self.groups.columns()

    def _of_series(self) -> dict[str, np.ndarray]:
        """Columns of the sums over all series, which the rows of each series have again."""
        columns: dict[str, np.ndarray] = {}
        for one, prefix in (
            (self.series_steps, f"{SERIES}_"),
            (self.series_sums, f"{SERIES}_{TOTAL}"),
        ):
            for name, values in ({} if one is None else one.columns()).items():
                again = np.resize(values, len(self.mean))
                columns[f"{prefix}{name.removeprefix(TOTAL)}"] = again
        return columns

    def tensors(self) -> dict[str, np.ndarray]:
        found = {"mean": self.mean, "median": self.median, "deviation": self.deviation}
        for kind, lower, upper in self._bounds:
            prefix = "" if kind == "credible" else f"{kind}_"
            found[f"{prefix}quantiles"] = np.stack([lower, upper], axis=-1)
        if self.p:
            found["quantile_values"] = self.quantiles
        if self.thresholds:
            found["exceeds"] = self.exceeds
        of_groups = {} if self.groups is None else self.groups.tensors()
        own = {f"{TOTAL}{name}": values for name, values in found.items()}
        return own | self._tensors_of_series() | of_groups

    def _tensors_of_series(self) -> dict[str, np.ndarray]:
        """Of the sums over all series, with a value per step."""
        return {
            f"{SERIES}_{prefix}{name.removeprefix(TOTAL)}": values
            for one, prefix in ((self.series_steps, ""), (self.series_sums, TOTAL))
            for name, values in ({} if one is None else one.tensors()).items()
        }


@dataclass(frozen=True)
class GroupTotals:
    """Of the sums over the series of each group.

    Args:
        names, members: of each group: its name, and the keys of its series.
        steps, sums: of each step, and up to each; their rows are the steps of one group after
            those of the other.
    """

    names: tuple[str, ...]
    members: tuple[tuple[str, ...], ...]
    steps: TotalsAnswer
    sums: TotalsAnswer

    @property
    def _ahead(self) -> int:
        return len(self.steps.mean) // len(self.names)

    def document(self) -> list[dict[str, Any]]:
        found = []
        for i, (name, members) in enumerate(zip(self.names, self.members, strict=True)):
            rows = slice(i * self._ahead, (i + 1) * self._ahead)
            each, sums = (one.select(rows).document() for one in (self.steps, self.sums))
            found.append({"group": name, "series": list(members), "steps": each, "sums": sums})
        return found

    def columns(self) -> dict[str, Any]:
        """As those of series: the sum of a step, and `total_` columns of the sums up to it."""
        each = {k.removeprefix(TOTAL): v for k, v in self.steps.columns().items()}
        each["total_variance"] = each.pop("deviation") ** 2
        names = [name for name in self.names for _ in range(self._ahead)]
        steps = np.tile(np.arange(1, self._ahead + 1), len(self.names))
        return {GROUP: names, "step": steps} | each | self.sums.columns()

    def tensors(self) -> dict[str, np.ndarray]:
        """Groups × steps, …"""
        shape = (len(self.names), self._ahead)
        found = {GROUP: np.array(self.names, object)}
        for one, prefix in ((self.steps, ""), (self.sums, TOTAL)):
            for name, values in one.tensors().items():
                rows = values.reshape(*shape, *values.shape[1:])
                found[f"{GROUP}_{prefix}{name.removeprefix(TOTAL)}"] = rows
        return found


def of_mixture(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """Not from the mixture of a step: `models.forecasting.totals` sums whole paths."""
    raise NotImplementedError


def answer(arrays: Arrays, options: ResolvedOptions, classes: Classes) -> TotalsAnswer:
    found = _answer(arrays, options)
    series, groups = (_under(arrays, name) for name in (SERIES, GROUPS))
    if series:
        each, sums = (_answer(_under(series, name), options) for name in (STEPS, SUMS))
        found = replace(found, series_steps=each, series_sums=sums)
    if groups:
        each, sums = (_answer(_under(groups, name), options) for name in (STEPS, SUMS))
        names, members = (tuple(groups[name].tolist()) for name in ("names", "members"))
        found = replace(found, groups=GroupTotals(names, members, each, sums))
    return found


def _under(arrays: Arrays, name: str) -> Arrays:
    start = f"{name} "
    return {key.removeprefix(start): v for key, v in arrays.items() if key.startswith(start)}


def _answer(arrays: Arrays, options: ResolvedOptions) -> TotalsAnswer:
    assert options.totals is not None
    none = np.empty((len(arrays["mean"]), 0))
    return TotalsAnswer(
        levels=options.intervals,
        p=options.quantiles,
        thresholds=options.totals.exceeds,
        mean=arrays["mean"],
        median=arrays["median"],
        deviation=arrays["deviation"],
        mc_error=arrays.get("mc_error"),
        lower=arrays.get("credible lower"),
        upper=arrays.get("credible upper"),
        conformal_lower=arrays.get("conformal lower"),
        conformal_upper=arrays.get("conformal upper"),
        quantiles=arrays.get("quantiles", none),
        exceeds=arrays.get("exceeds", none),
    )


_OF_SUMS = {
    "mean": (-1,),
    "median": (-1,),
    "deviation": (-1,),
    "quantiles": (-1, -1, 2),
    "quantile_values": (-1, -1),
    "exceeds": (-1, -1),
}

QUESTION = Question(
    "totals",
    of_mixture,
    answer,
    ("forecasting",),
    {f"{TOTAL}{name}": shape for name, shape in _OF_SUMS.items()}
    | {f"{TOTAL}conformal_quantiles": (-1, -1, 2), GROUP: (-1,)}
    | {
        f"{of}_{prefix}{name}": (*more, *shape)
        for of, more in ((SERIES, ()), (GROUP, (-1,)))
        for prefix in ("", TOTAL)
        for name, shape in _OF_SUMS.items()
    },
    texts={"forecasting": (GROUP,)},
)
