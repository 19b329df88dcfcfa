"""How improbable the newest values of series are, as arrays."""

from typing import TYPE_CHECKING, Any, NamedTuple

from credence.client.arrow import numpy

if TYPE_CHECKING:
    from numpy import ndarray

    from credence.client.arrow import Table

PREFIX = "anomaly_"  # of the columns, which have all newest values in each row of a series


class Anomalies(NamedTuple):
    """The newest values of each series, each against its prediction from the values before it.

    Arrays are series × newest values, oldest first; NaN where a value is missing or cannot be
    scored.

    Attributes:
        series: the names of the series; None of a model without a key.
        times: of the values.
        p_value: the probability of a value at least as far out on either side.
        surprise: −log₂ of it, in bits.
        flagged: whether it is below the version's rate of false alarms.
        joint_p_value, joint_flagged: per series, of its newest values together.
    """

    series: "ndarray | None"
    times: "ndarray"
    value: "ndarray"
    p_value: "ndarray"
    surprise: "ndarray"
    flagged: "ndarray"
    joint_p_value: "ndarray"
    joint_flagged: "ndarray"


def read_anomalies(table: "Table") -> Anomalies:
    """From the first row of each series."""
    np = numpy()
    first = first_rows(table)
    numbers = {n: _of_rows(table, n, first) for n in ("value", "p_value", "surprise")}
    times = [_without_zone(row) for row in _of_rows(table, "time", first)]
    return Anomalies(
        series=table.to_numpy("series")[first] if "series" in table.column_names else None,
        times=np.array(times),
        **{name: np.array(rows, dtype=float) for name, rows in numbers.items()},
        flagged=np.array(_of_rows(table, "flagged", first), dtype=bool),
        joint_p_value=np.array(_of_rows(table, "joint_p_value", first), dtype=float),
        joint_flagged=np.array(_of_rows(table, "joint_flagged", first), dtype=bool),
    )


def first_rows(table: "Table") -> list[int]:
    """The number of the first step's row of each series."""
    if "step" not in table.column_names:
        return [0]
    steps = table.to_pylist("step")
    count = table.to_pylist("group").count(None) if "group" in table.column_names else len(steps)
    return [i for i, step in enumerate(steps[:count]) if step == 1]  # the last rows are of groups


def _of_rows(table: "Table", name: str, rows: list[int]) -> list[Any]:
    values = table.to_pylist(f"{PREFIX}{name}")
    return [values[row] for row in rows]


def _without_zone(times: list[Any]) -> list[Any]:
    """As other times of a prediction: in UTC."""
    read = numpy().datetime64
    return [read(t.replace(tzinfo=None)) if hasattr(t, "replace") else t for t in times]
