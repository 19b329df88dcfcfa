"""What only forecasts answer: sums over their steps, and how improbable the newest values are."""

from models.prediction.declared_outputs import (
    FORECASTS,
    LEVEL,
    NEWEST,
    THRESHOLD,
    Coordinates,
    Output,
    P,
    Part,
    bounds,
)
from models.prediction.options import BatchOptions
from models.prediction.outputs.numbers import EXCEEDS, QUANTILE
from models.prediction.outputs.question import Question

_SUMS = (
    Output("mean", "target", FORECASTS),
    Output("median", "target", FORECASTS),
    Output("deviation", "target", FORECASTS, column=None, tensor="deviation"),
    Output("mc_error", "target", FORECASTS, tensor=None, is_nullable=True),
    Output("deviation", "target", FORECASTS, None, tensor=None),
    *bounds(FORECASTS, ("credible", "conformal")),
    QUANTILE,
    EXCEEDS,
)
_SUMS_OF_SERIES = tuple(output for output in _SUMS if output.kind != "conformal")


def _sums(name: str, member: str, prefix: str, outputs: tuple[Output, ...]) -> Part:
    return Part(name, member, prefix, outputs, "totals")


TOTALS = _sums("totals", "totals", "total_", _SUMS)
"""Of the sum over the steps up to each one; of `exceeds` with thresholds of the sums."""

SERIES = (
    _sums("series_steps", "totals.series.steps", "series_", _SUMS_OF_SERIES),
    _sums("series_sums", "totals.series.sums", "series_total_", _SUMS_OF_SERIES),
)
"""Of the sum over all series, of each step and up to each; their rows are the steps."""

GROUPS = (
    _sums("group_steps", "totals.groups.steps", "group_", _SUMS_OF_SERIES),
    _sums("group_sums", "totals.groups.sums", "group_total_", _SUMS_OF_SERIES),
)
"""Of the sums over groups of series: the steps of one group after those of the other.

The constants `groups` and `members` are the name of each group, and the keys of its series.
"""

GROUP = "group"
"""The column and tensor with the names of groups, whose rows come after those of the series."""


def coordinates_of_sums(options: BatchOptions) -> Coordinates:
    """The intervals, quantiles and thresholds that sums have."""
    thresholds = () if options.totals is None else options.totals.exceeds
    return {LEVEL: options.intervals, P: options.quantiles, THRESHOLD: thresholds}


ANOMALIES = Part(
    "anomalies",
    "anomalies",
    "anomaly_",
    (
        Output("series", "key", FORECASTS, column=None, along=NEWEST),
        Output("time", "time", FORECASTS, "times", tensor=None, along=NEWEST),
        Output("value", "target", FORECASTS, along=NEWEST),
        Output("p_value", "probability", FORECASTS, along=NEWEST),
        Output("surprise", "bits", FORECASTS, along=NEWEST),
        Output("flagged", "true or false", FORECASTS, along=NEWEST),
        Output("joint_series", "key", FORECASTS, "joint.series", None),
        Output("joint_p_value", "probability", FORECASTS, "joint.p_value"),
        Output("joint_flagged", "true or false", FORECASTS, "joint.flagged"),
    ),
    "anomalies",
    repeats=True,
)
"""The newest values of each series, each against its prediction from the values before it.

Its rows are the series. Values that are missing, and those after a hole that is too long, are not
scored: NaN. The p-value is min(1, 2 min(P(Y ≤ y), P(Y ≥ y))), the surprise its −log₂ (Greenland
2019, "Valid p-values behave exactly as they should", The American Statistician 73). Flags say
whether p-values are below the version's false-alarm rate; the joint ones are of all newest values.
"""

QUESTIONS = (
    Question("totals", FORECASTS, (TOTALS, *SERIES, *GROUPS), None),
    Question("anomalies", FORECASTS, (ANOMALIES,), None),
)
