"""What true values say about a version in use, in a sentence, and the alarms of all models."""

from dataclasses import dataclass

from app.ui.card.beside import Verdict
from core.context import Context
from core.database.schema import Json
from core.predictions.window_check import LEVEL, labels_between_tests, leaves

USUAL = 0.05  # p-values above it are no sign of a change
ONE_SIDE = (
    0.65  # a share of true values above, or below, the predicted medians that is worth saying
)
_BILLION, _MILLION = 1e9, 1e6


@dataclass(frozen=True)
class Alarm:
    """A version whose newest true values fit worse than chance allows, and the sentence."""

    model: str
    version: int
    text: str


def alarms(context: Context) -> list[Alarm]:
    """The alarms of the models that the caller may see, newest labels first.

    Of versions with labels in the last week, as in the metrics: older alerts have ended.
    """
    left = [one for one in context.feedback.recent() if leaves(one.metrics.get("check") or {})]
    visible = context.registry.visible({one.model for one in left})
    return [
        Alarm(one.model, one.version, sentence(one.metrics["check"]))
        for one in left
        if one.model in visible
    ]


def feedback_verdict(feedback: Json, window: int) -> Verdict | None:
    """What the last test of a version's labels says; None without labels.

    Args:
        feedback: the metrics of the version's window.
        window: the most rows in a window.
    """
    check = feedback.get("check")
    if not check:
        return None
    if _test(check):
        return Verdict(_kind(check), sentence(check))
    if not check["rows"]:
        few = f"{check['labels']:,} of {labels_between_tests(window):,}"
        return Verdict("equal", f"Too few true values for the first test: {few}")
    return Verdict("equal", "No test: this version has no counts of its held-out rows")


def sentence(check: Json) -> str:
    """The result of the test with its counts. With an alarm: what is wrong, and in which direction.

    Shares of held-out rows are those of the version's scores, that is of its full posterior.
    """
    test = _test(check)
    last = f"Of the last {test['rows']:,} true values"
    if "correct" in test:
        right, expected = (_percent(test[n], test["rows"]) for n in ("correct", "expected_correct"))
        said = f"{last}, {right} were the predicted class; the confidence promised {expected}"
        side = "high" if test["expected_correct"] > test["correct"] else "low"
        return f"{said}. The probabilities are too {side} now" if leaves(check) else said
    inside = _percent(test["inside"], test["rows"])
    said = (
        f"{last}, {inside} were inside the {100 * LEVEL:g} % intervals; of the held-out rows, "
        f"{100 * test['held_out_coverage']:.0f} % were"
    )
    return f"{said}. The intervals are too narrow now{_side(check)}" if leaves(check) else said


def _side(check: Json) -> str:
    """On which side of the predicted medians most true values are, if they are on one."""
    above = (check.get("coverage") or {}).get(f"{LEVEL:g}", {}).get("above_median")
    for share, side in ((above, "above"), (None if above is None else 1 - above, "below")):
        if share is not None and share >= ONE_SIDE:
            return f", and {100 * share:.0f} % of the true values are {side} the predicted medians"
    return ""


def by_chance(feedback: Json) -> str | None:
    """How often chance alone would give the result of the last test, or a more extreme one.

    None without a test.
    """
    test = _test(feedback.get("check") or {})
    return how_often(test["p_value"]) if test else None


def how_often(probability: float) -> str:
    """A probability as a count of times: `once in 3.5 million times`."""
    if probability >= 0.01:
        return f"{100 * probability:.0f} in 100 times"
    times = 1 / probability if probability else float("inf")
    if times >= _BILLION:
        return "less than once in a billion times"
    if times >= _MILLION:
        return f"once in {times / _MILLION:.2g} million times"
    return f"once in {float(f'{times:.2g}'):,.0f} times"


def waiting(feedback: Json, window: int) -> int:
    """How many of the newest labels wait for the next test."""
    return int((feedback.get("check") or {}).get("labels", 0) % labels_between_tests(window))


def _kind(check: Json) -> str:
    """`worse` with an alert, `better` if the labels are as expected, else `equal`."""
    if leaves(check):
        return "worse"
    return "better" if _test(check)["p_value"] > USUAL else "equal"


def _test(check: Json) -> Json:
    """The test that decides on the alarm; empty if there was none."""
    return check.get("calibration") or (check.get("coverage") or {}).get(f"{LEVEL:g}") or {}


def _percent(part: float, of: int) -> str:
    return f"{100 * part / max(of, 1):.0f} %"
