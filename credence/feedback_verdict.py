"""What true values say about a model: the verdict of the service's tests, in a sentence.

The service decides by the same rule (`core.predictions.window_check`); a client does without it.
"""

from credence.types import Json, RollingFeedback

LEVEL = "0.9"  # of the intervals whose coverage raises the alarm
MOST_BETWEEN_TESTS = 100  # labels; a tenth of a window of less than 1,000 rows


def leaves(rolling: RollingFeedback) -> bool:
    """Whether the newest true values fit the predictions worse than chance allows."""
    check = rolling["metrics"].get("check") or {}
    at = check.get("alarm_p_value", 0.0)
    if calibration := check.get("calibration"):
        return bool(calibration["p_value"] <= at)
    coverage = (check.get("coverage") or {}).get(LEVEL)
    if not coverage:
        return False
    is_low = coverage["inside"] < float(LEVEL) * coverage["rows"]
    return bool(is_low and coverage["p_value"] <= at)


def sentence(rolling: RollingFeedback) -> str:
    """The verdict with its counts, or what there is too little of."""
    check = rolling["metrics"].get("check") or {}
    step = min(MOST_BETWEEN_TESTS, rolling["window"] // 10)
    if calibration := check.get("calibration"):
        return _of_classes(calibration, is_off=leaves(rolling)) + _waiting(check, step)
    if coverage := (check.get("coverage") or {}).get(LEVEL):
        return _of_intervals(coverage, is_off=leaves(rolling)) + _waiting(check, step)
    if check and not check["rows"]:
        return f"too few rows to tell: {check['labels']} of {step}"
    return "nothing to compare with: the version has no counts of its held-out rows"


def _waiting(check: Json, step: int) -> str:
    """The newest rows, which the table has and the test has not."""
    newest = check["labels"] % max(1, step)
    if not newest:
        return ""
    return f"; the newest {newest} wait for the next test, after {step - newest} more"


def _of_intervals(test: Json, *, is_off: bool) -> str:
    return (
        f"Inside the 90 % interval: {'lower than chance allows' if is_off else 'as expected'} "
        f"({test['inside']} of {test['rows']} rows; of the held-out rows "
        f"{test['held_out_coverage']:.1%})"
    )


def _of_classes(test: Json, *, is_off: bool) -> str:
    return (
        f"Correct: {'other than chance allows' if is_off else 'as expected'} "
        f"({test['correct']} of {test['rows']} rows; {test['expected_correct']:.0f} expected, "
        "as of held-out rows of equal confidence)"
    )
