"""Do alarms come at their stated rate, with few calibration rows and with many?

Without drift at most 1 of 1,000 windows of new labels raises an alarm, and at most 1 of 1,000
versions ever raises one on unlabelled rows. Alarms are too rare at this rate to be counted, so that
the p-values are also compared with a rate of 5 %. All bounds are binomial: the stated rate, plus
what chance adds in one of 10,000 simulations.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist

import numpy as np
import torch

from benchmarks.verification.alarms import (
    LOOKS,
    OFTEN,
    STEP,
    WINDOW,
    Labels,
    coverage_scores,
    drift_alarms,
    labelled,
    most_by_chance,
)
from benchmarks.verification.alert_methods import Watched, watch_methods
from benchmarks.verification.check import Check, Scale
from models.evaluation.calibration import LabelledMixture, fit_scale
from models.evaluation.detector import Detector
from models.evaluation.exact_tests import ALARM_RATE, highest_mean
from models.evaluation.metrics import COVERAGE_LEVELS, PerRowScores, summarise
from models.likelihoods.number_mixture import NumberMixture

CALIBRATION_ROWS = (19, 59, 199, 1_000, 10_000)
HELD_OUT_ROWS = (19, 59, 199, 1_000)
HOURS = 24
FALSE_ALARMS = 0.01


def checks(scale: Scale) -> list[Check]:
    """The rates of all alarms without drift, and the labels that a drift takes."""
    return [*_all(scale == "full")]


def _all(full: bool) -> Iterator[Check]:
    models = 600 if full else 25
    for rows in CALIBRATION_ROWS:
        streams = [_numbers(rows, WINDOW, seed) for seed in range(models)]
        yield from _rates(f"Gaussian model, {rows:,} calibration rows, 1,000 labels", streams, 1)
    if full:
        streams = [_numbers(199, 10 * WINDOW, seed) for seed in range(models // 3)]
        yield from _rates("Gaussian model, 199 calibration rows, 10,000 labels", streams, 10)
    for rows in HELD_OUT_ROWS:
        streams = [_classes(rows, seed) for seed in range(models // 2)]
        yield from _rates(f"classifier, {rows:,} held-out rows, 1,000 labels", streams, 1)
    for rows in CALIBRATION_ROWS:
        yield _flags(rows, 20 * models)
        yield _shares(rows, 2 * models)
    yield from _methods(watch_methods(full))
    yield _seen(200 if full else 15)
    for rows in (1_000, 10_000):
        yield _power(rows, 200 if full else 15)


def _rates(what: str, streams: Sequence[Labels], windows: int) -> Iterator[Check]:
    number = len(streams)
    for name, rate, share in (
        ("P(alarm)", ALARM_RATE, np.mean([np.isfinite(one.first_alarm) for one in streams])),
        (
            f"P(p ≤ 5 % ÷ {LOOKS})",
            OFTEN,
            np.mean([one.smallest <= OFTEN / LOOKS for one in streams]),
        ),
    ):
        most = most_by_chance(number, min(windows * rate, 1.0))
        yield Check(f"{what}: {name}", f"≤ {windows * rate:g}", float(share), 0.0, most)


def _numbers(rows: int, labels: int, seed: int, later: float = 1.0) -> Labels:
    """A Gaussian model whose only error is the scale that its calibration rows gave.

    As many rows are held out for the scores.

    Args:
        later: the targets' standard deviation among the labels; 1 without drift.
    """
    random = np.random.default_rng([seed, rows])
    scale = _scale(random.normal(size=rows))
    held_out = summarise(_scores(random.normal(size=rows), scale))
    return labelled(_scores(later * random.normal(size=labels), scale), held_out)


def _scale(targets: np.ndarray) -> float:
    ones = torch.ones(1, len(targets), dtype=torch.float64)
    mixture = NumberMixture.gaussian(0 * ones, ones)
    return fit_scale([LabelledMixture(mixture, torch.from_numpy(targets), None)]) ** 0.5


def _scores(targets: np.ndarray, deviation: float) -> PerRowScores:
    """The scores that the tests read; all others are 0."""
    ends = [deviation * NormalDist().inv_cdf(0.5 + 0.5 * level) for level in COVERAGE_LEVELS]
    zeros = torch.zeros(len(targets), dtype=torch.float64)
    names = ("log_likelihood", "squared_error", "mae", "crps", "epistemic_share", "pit")
    others = dict.fromkeys((*names, *(f"width_{q:g}" for q in COVERAGE_LEVELS)), zeros)
    return others | coverage_scores([np.abs(targets) <= end for end in ends])


def _classes(rows: int, seed: int) -> Labels:
    """An overconfident classifier: right with a probability of its confidence − 0.1."""
    random = np.random.default_rng([seed, rows])

    def scores(number: int) -> PerRowScores:
        confidence = torch.from_numpy(random.beta(3, 1, number)) * 0.5 + 0.5
        correct = torch.from_numpy(random.random(number)) < confidence - 0.1
        names = ("log_likelihood", "brier", "epistemic_share", "uncertainty")
        others = {name: torch.zeros(number, dtype=torch.float64) for name in names}
        return others | {"confidence": confidence, "correct": correct.double()}

    held_out = summarise(scores(rows))
    return labelled(scores(WINDOW), held_out)


def _flags(rows: int, models: int) -> Check:
    """Versions whose flagged rows raise an alarm in any of 24 hours of 200 to 20,000 rows."""
    random = np.random.default_rng(rows)
    alarms = 0
    fitted = Detector.fit("surprise", random.random(rows), FALSE_ALARMS)
    bound, usual = fitted.highest_rate(), fitted.false_alarm_rate
    for _ in range(models):
        detector = Detector.fit("surprise", random.random(rows), FALSE_ALARMS)
        numbers = np.geomspace(200, 20_000, HOURS).astype(int)
        flagged = random.binomial(numbers, 1 - detector.threshold)
        alarms += any(
            drift_alarms(k / m, m, usual, bound, least=5 * usual)
            for k, m in zip(flagged.tolist(), numbers.tolist(), strict=True)
        )
    what = f"{rows:,} rows gave the threshold, 24 hours: P(OutOfDistributionRising)"
    most = most_by_chance(models, ALARM_RATE)
    return Check(what, f"≤ {ALARM_RATE:g}", alarms / models, 0.0, most)


def _shares(rows: int, models: int) -> Check:
    """Versions whose epistemic shares raise an alarm; shares are 0 or 1, the hardest ones."""
    random = np.random.default_rng(rows)
    alarms = 0
    for _ in range(models):
        usual = random.binomial(rows, 0.05) / rows
        bound = highest_mean(usual, rows)
        numbers = np.geomspace(200, 20_000, HOURS).astype(int)
        means = random.binomial(numbers, 0.05) / numbers
        alarms += any(
            drift_alarms(p, m, usual, bound, least=max(2 * usual, usual + 0.1))
            for p, m in zip(means.tolist(), numbers.tolist(), strict=True)
        )
    what = f"{rows:,} held-out rows, 24 hours: P(EpistemicShareHigh)"
    most = most_by_chance(models, ALARM_RATE)
    return Check(what, f"≤ {ALARM_RATE:g}", alarms / models, 0.0, most)


def _methods(watched: Sequence[Watched]) -> Iterator[Check]:
    """Trained models on small tables, and 1,000 fresh rows for each of them."""
    for method in dict.fromkeys(one.method for one in watched):
        some = [one for one in watched if one.method == method]
        rarely = np.mean([one.labels.smallest <= OFTEN / LOOKS for one in some])
        what = f"{method}, {len(some)} trained models, 1,000 labels: P(p ≤ 5 % ÷ {LOOKS})"
        yield Check(what, f"≤ {OFTEN:g}", float(rarely), 0.0, most_by_chance(len(some), OFTEN))
    number = len(watched)
    kinds: dict[str, Callable[[Watched], bool]] = {
        "CoverageLow or CalibrationOff": lambda one: bool(np.isfinite(one.labels.first_alarm)),
        "OutOfDistributionRising": lambda one: one.flags_alarm,
        "EpistemicShareHigh": lambda one: one.share_alarm,
    }
    for name, raised in kinds.items():
        share = float(np.mean([raised(one) for one in watched]))
        most = most_by_chance(number, ALARM_RATE)
        yield Check(
            f"all {number} trained models: P({name})", f"≤ {ALARM_RATE:g}", share, 0.0, most
        )


def _fallen(rows: int, models: int) -> list[float]:
    """The labels until the alarm of models whose 90 % intervals now cover 80 %, at most 2,000."""
    deviation = NormalDist().inv_cdf(0.95) / NormalDist().inv_cdf(0.9)
    return [_numbers(rows, 2 * WINDOW, seed, deviation).first_alarm for seed in range(models)]


def _seen(models: int) -> Check:
    """How often 199 held-out rows show the fall: a single test of 900 labels has a power of 0.31.

    The power is Φ((0.1 − 3.72 √(r(1 − r)(1/199 + 1/900))) ÷ √(0.9 · 0.1/199 + 0.8 · 0.2/900));
    the other tests add to it. The bound is 3 standard errors lower.
    """
    share = float(np.mean(np.isfinite(_fallen(199, models))))
    least = 0.31 - 3 * (0.31 * 0.69 / models) ** 0.5
    what = "199 held-out rows, coverage falls from 90 % to 80 %: P(alarm in 2,000 labels)"
    return Check(what, "≥ 0.31", share, max(least, 0.0), 1.0)


def _power(rows: int, models: int) -> Check:
    """Labels until 90 % intervals that now cover 80 % raise the alarm, in nine of ten cases.

    For proportions p and q of n and m rows a test at 0.0001 has a power of 0.9 if p − q =
    3.72 √(r(1 − r)(1/n + 1/m)) + 1.28 √(p(1 − p)/n + q(1 − q)/m), where r is the share of all rows.
    For n = 1,000 this is m = 450, for 10,000 m = 280. Two looks are added, as the test is exact, a
    little cautious, and made after every 100 labels only.
    """
    found = _fallen(rows, models)
    wanted = {1_000: 450, 10_000: 280}[rows]
    what = (
        f"{rows:,} held-out rows, coverage falls from 90 % to 80 %: labels until the alarm, 9 of 10"
    )
    labels = float(np.quantile(found, 0.9, method="higher"))
    return Check(what, f"≈ {wanted}", labels, STEP, wanted + 2 * STEP)
