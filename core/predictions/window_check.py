"""Compares a window of labels with the held-out rows of its version, and decides on alarms.

The rows of the window and the held-out rows are exchangeable if nothing has changed. So the tests
(`models.evaluation.exact_tests`) are exact for every method, calibrated or not, and for any number
of held-out rows. The window is not tested at every label, but after every `step` labels, and
`ALARM_RATE` is divided by the number of tests in as many new labels as the window has rows. In
these labels a test therefore raises a false alarm with a probability of at most `ALARM_RATE` (the
sum bounds the union, however much the windows overlap).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from core.database.schema import Json
from models.evaluation.exact_tests import (
    ALARM_RATE,
    Counts,
    expected_hits,
    independent_rows,
    p_fewer,
    p_other,
)
from models.evaluation.metrics import COVERAGE_LEVELS, PerRowScores
from models.evaluation.reliability import confidence_counts

STEP = 100  # labels between two tests; fewer in a window of less than 1,000 rows
LEVEL = 0.9  # of the intervals whose coverage raises the alarm

Metrics = Mapping[str, Any]


def alarm_p_value(window: int) -> float:
    """The p-value at which, or below which, a test raises an alarm."""
    return ALARM_RATE / math.ceil(window / labels_between_tests(window))


def check_window(
    scores: PerRowScores, labels: int, window: int, held_out: Sequence[Metrics]
) -> Json:
    """The tests of the rows up to the last multiple of `step` labels; without rows, no test.

    Args:
        scores: of the rows in the window, the newest last.
        labels: number of labelled rows that the version ever had.
        window: the most rows in a window.
        held_out: the metrics of each variant, the full posterior first. Rows may be of any variant,
            and count as those of the variant with the highest p-value.
    """
    tested = _tested(scores, labels, window)
    rows = len(next(iter(tested.values())))
    found: Json = {"labels": labels, "rows": rows, "alarm_p_value": alarm_p_value(window)}
    if not rows:
        return found
    if "correct" in tested:
        calibration = _calibration(tested, held_out)
        return found | ({"calibration": calibration} if calibration else {})
    coverage = {
        f"{level:g}": _coverage(tested, f"{level:g}", held_out) for level in COVERAGE_LEVELS
    }
    known = {level: test for level, test in coverage.items() if test}
    return found | ({"coverage": known} if known else {})


def verdict(check: Metrics) -> str | None:
    """What the tests say, for people; None without a test."""
    at = check.get("alarm_p_value", 0.0)
    if calibration := check.get("calibration"):
        return "other than chance allows" if calibration["p_value"] <= at else "as expected"
    coverage = check.get("coverage", {}).get(f"{LEVEL:g}")
    if not coverage:
        return None
    is_low = coverage["inside"] < LEVEL * coverage["rows"]
    return "lower than chance allows" if is_low and coverage["p_value"] <= at else "as expected"


def leaves(check: Metrics) -> bool:
    """Whether the tests raise an alarm."""
    return verdict(check) not in (None, "as expected")


def labels_between_tests(window: int) -> int:
    """Labels between two tests of a window of this many rows."""
    return min(STEP, window // 10)


def _tested(scores: PerRowScores, labels: int, window: int) -> PerRowScores:
    """The rows before the last multiple of `step` labels: the same until the next multiple.

    They are a step fewer than the window, because until then it forgets up to a step of them.
    """
    step = labels_between_tests(window)
    stop = max(len(next(iter(scores.values()))) - labels % step, 0)
    return {name: values[max(stop - window + step, 0) : stop] for name, values in scores.items()}


def _coverage(tested: PerRowScores, level: str, held_out: Sequence[Metrics]) -> Json | None:
    """The test for fewer rows inside the intervals of a level than among the held-out rows.

    `held_out_rows` and `held_out_inside` are the counts that are tested, of the variant that covers
    least; `held_out_coverage` is the coverage of the first variant, as in the version's scores.
    """
    inside = tested[f"coverage_{level}"]
    known = [m for m in held_out if (m.get("coverage") or {}).get(level) is not None]
    counts = [_of_numbers(int(inside.sum()), len(inside), m, level) for m in known]
    if not counts:
        return None
    p_value, one = max(((p_fewer([one]), one) for one in counts), key=lambda pair: pair[0])
    return {
        "rows": one.rows,
        "inside": one.hits,
        "held_out_rows": one.held_out_rows,
        "held_out_inside": one.held_out_hits,
        "held_out_coverage": known[0]["coverage"][level],
        "p_value": p_value,
    } | _sides(tested)


def _sides(tested: PerRowScores) -> Json:
    """The share of true values above the predicted median; empty for labels of older releases."""
    if "pit" not in tested:
        return {}
    return {"above_median": (tested["pit"] > 0.5).double().mean().item()}


def _of_numbers(inside: int, rows: int, metrics: Metrics, level: str) -> Counts:
    """The counts of rows. The steps of a forecast are not independent: they count as one row."""
    steps, some = metrics.get("horizon") or 1, independent_rows(metrics)
    few = rows // steps
    return Counts(
        rows=few,
        hits=min(math.ceil(inside / steps), few),
        held_out_rows=some,
        held_out_hits=math.floor(metrics["coverage"][level] * some + 1e-9),
    )


def _calibration(tested: PerRowScores, held_out: Sequence[Metrics]) -> Json | None:
    """The test for another share of correct rows than among held-out rows of equal confidence."""
    known = [m for m in held_out if m.get("accuracy") is not None]
    if not known:
        return None
    tests = [_of_classes(tested, metrics) for metrics in known]
    p_value, strata = max(((p_other(strata), strata) for strata in tests), key=lambda pair: pair[0])
    return {
        "rows": sum(one.rows for one in strata),
        "correct": sum(one.hits for one in strata),
        "expected_correct": expected_hits(strata),
        "held_out_rows": sum(one.held_out_rows for one in strata),
        "p_value": p_value,
    }


def _of_classes(tested: PerRowScores, metrics: Metrics) -> list[Counts]:
    """The counts by confidence; of versions without them, of all rows together."""
    rows = independent_rows(metrics)
    held_out = metrics.get("confidence_counts") or [[rows, round(metrics["accuracy"] * rows)]]
    share = rows / max(sum(count for count, _ in held_out), 1)  # below 1 for rows of large weights
    new = confidence_counts(tested["confidence"], tested["correct"], bins=len(held_out))
    pairs = zip(new, held_out, strict=True)
    return [Counts(n, k, round(share * m), round(share * right)) for (n, k), (m, right) in pairs]
