"""Streams of labels and rows, and whether they raise the alarms of a service.

Labels pass through the code that decides in the service (`core.predictions.window_check`). The
alarms on unlabelled rows are decided by Prometheus' rules, which `drift_alarms` repeats; the tests
compare the rules with these constants, and promtool's tests the formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats

from core.predictions.window_check import STEP, check_window, verdict
from models.config import Json
from models.evaluation.exact_tests import bernoulli_divergence
from models.evaluation.metrics import PerRowScores

WINDOW = 1_000
LOOKS = WINDOW // STEP
EVIDENCE = 20.7  # nats
MIN_ROWS = 200
OFTEN = 0.05  # a rate that is high enough to be measured with some hundred models
_UNLUCKY = 1e-4  # the probability with which a right rate is above its bound


@dataclass(frozen=True)
class Labels:
    """What a stream of labels raised.

    Args:
        first_alarm: number of labels at the first alarm; infinite without one.
        smallest: the smallest p-value of all tests.
    """

    first_alarm: float
    smallest: float


def labelled(scores: PerRowScores, held_out: Json, *, until_alarm: bool = False) -> Labels:
    """The tests of a stream of labels, one after every `STEP` of them.

    Args:
        until_alarm: end the stream at the first alarm.
    """
    first, smallest = np.inf, 1.0
    for count in range(STEP, len(next(iter(scores.values()))) + 1, STEP):
        window = {name: values[max(count - WINDOW, 0) : count] for name, values in scores.items()}
        check = check_window(window, count, WINDOW, [held_out])
        test = check.get("calibration") or check["coverage"]["0.9"]
        smallest = min(smallest, test["p_value"])
        if verdict(check) != "as expected":
            first = min(first, count)
            if until_alarm:
                break
    return Labels(first, smallest)


def coverage_scores(inside: Sequence[np.ndarray]) -> PerRowScores:
    """Scores of rows that are inside the intervals of the four levels, or not."""
    names = ("coverage_0.5", "coverage_0.8", "coverage_0.9", "coverage_0.95")
    return {name: torch.from_numpy(some).double() for name, some in zip(names, inside, strict=True)}


def drift_alarms(share: float, rows: int, usual: float, bound: float, least: float) -> bool:
    """Whether an hour of rows raises `OutOfDistributionRising` or `EpistemicShareHigh`.

    Args:
        share: of the hour: flagged rows, or the mean epistemic share.
        usual: its expectation.
        bound: its bound by chance.
        least: what the share must exceed to matter.
    """
    return (
        rows >= MIN_ROWS
        and share > max(least, usual, bound)
        and rows * bernoulli_divergence(share, bound) > EVIDENCE
    )


def most_by_chance(number: int, rate: float) -> float:
    """The highest share of events that a rate gives, but for one of 10,000 simulations."""
    return float(stats.binom.isf(_UNLUCKY, number, rate) / number)
