"""Scores that are expected without labels, and the labels that samples give."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch
from scipy import stats

from models.evaluation.calibration import LabelledMixture
from models.evaluation.detector import Detector
from models.evaluation.exact_tests import binomial_up_to
from models.expected_scores.expectation import Expectation, Promise, compare_unlike, expect
from models.expected_scores.simulation import Simulated, draw_labels, simulate
from models.likelihoods.class_mixture import CategoricalMixture, Mixture
from models.likelihoods.number_mixture import Integrated, NumberMixture
from tests.models.prediction.shaped_cases import Case

LEVEL = 0.9
REPETITIONS = 40
HELD_OUT, NEW = 200, 100


def enough(inside: list[bool]) -> bool:
    """Not fewer than the level promises, but with a probability of 0.001."""
    return binomial_up_to(sum(inside), len(inside), LEVEL) > 0.001


def promise(
    mixture: Mixture, labels: torch.Tensor, seed: int, weights: torch.Tensor | None = None
) -> Promise:
    noise = torch.Generator().manual_seed(2 * seed)
    drawn = simulate(LabelledMixture(mixture, labels, weights), None, noise)
    return Promise.of([drawn.held_out()])


def simulated(mixture: Mixture, labels: torch.Tensor, seed: int) -> Simulated:
    noise = torch.Generator().manual_seed(2 * seed + 1)
    drawn = simulate(LabelledMixture(mixture, labels, None), None, noise)
    return drawn.sums(torch.ones(len(labels), dtype=torch.bool))


@dataclass(frozen=True)
class Line:
    """y ~ N(0, (factor e^x)²); x is even on [−1, 1], of new rows on [0.4, 1]."""

    factor: float = 1.0  # of the true deviation ÷ the predicted one

    def x(self, rows: int, low: float, random: np.random.Generator) -> torch.Tensor:
        return torch.from_numpy(random.uniform(low, 1, rows))

    def mixture(self, x: torch.Tensor) -> NumberMixture:
        return NumberMixture.gaussian(torch.zeros(1, len(x)).double(), (2 * x).exp().unsqueeze(0))

    def labels(self, x: torch.Tensor, random: np.random.Generator) -> torch.Tensor:
        return self.factor * x.exp() * torch.from_numpy(random.normal(size=len(x)))


@cache
def repeated(
    factor: float, low: float, *, corrected: bool = True
) -> tuple[dict[str, Expectation], ...]:
    """What is expected of new rows, from data sets drawn anew."""
    line, found = Line(factor), []
    for seed in range(REPETITIONS):
        random = np.random.default_rng(seed)
        before, after = line.x(HELD_OUT, -1, random), line.x(NEW, low, random)
        kept = promise(line.mixture(before), line.labels(before, random), seed)
        new = simulated(line.mixture(after), line.labels(after, random), seed)
        found.append(expect(new, kept if corrected else None, LEVEL))
    return tuple(found)


def inside(found: Sequence[dict[str, Expectation]], name: str) -> list[bool]:
    return [bool(one[name].lower <= one[name].actual <= one[name].upper) for one in found]  # type: ignore[operator]


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_intervals_contain_the_scores_of_shifted_rows(
    factor: float,
) -> None:
    """Whether the noise is predicted right or wrong by a factor, as the held-out rows show."""
    found = repeated(factor, 0.4)
    for name in found[0]:
        assert enough(inside(found, name)), name


def test_the_expected_error_of_shifted_rows_is_that_of_the_closed_form() -> None:
    """E e^(2x) for x even on [0.4, 1] is (e² − e^0.8) / (2 · 0.6)."""
    found = repeated(1.5, 0.4)
    true = 1.5 * math.sqrt((math.exp(2) - math.exp(0.8)) / 1.2)
    expected = [one["rmse"].expected for one in found]
    assert np.mean(expected) == pytest.approx(true, rel=0.02)
    absolute = [one["mae"].expected for one in found]
    mean = 1.5 * math.sqrt(2 / math.pi) * (math.exp(1) - math.exp(0.4)) / 0.6
    assert np.mean(absolute) == pytest.approx(mean, rel=0.02)


def test_an_alarm_follows_a_shift_and_hardly_ever_chance() -> None:
    shifted = [one["rmse"].leaves for one in repeated(1.0, 0.4)]
    assert np.mean(shifted) > 0.95
    same = [one[name].leaves for one in repeated(1.0, -1) for name in one]
    assert np.mean(same) < 0.01


def test_what_labels_have_in_common_widens_the_interval() -> None:
    """All rows share a slope that is not known: y = w x + noise with w ~ N(0, 1).

    Far away (x near 5) the error is mostly w's, the same in all rows: independent labels, as many
    as there may be, would give an interval that hardly ever contains the score.
    """
    hits, naive = [], []
    for seed in range(REPETITIONS):
        random = np.random.default_rng(seed)
        slopes = torch.from_numpy(random.normal(size=25)).unsqueeze(1)
        slope = random.normal()

        def mixture(x: torch.Tensor, slopes: torch.Tensor = slopes) -> NumberMixture:
            return NumberMixture.gaussian(slopes * x, torch.ones(25, len(x)).double())

        def labels(
            x: torch.Tensor, random: np.random.Generator = random, slope: float = slope
        ) -> torch.Tensor:
            return slope * x + torch.from_numpy(random.normal(size=len(x)))

        before, after = (
            torch.from_numpy(random.uniform(*ends, rows))
            for ends, rows in (((-0.2, 0.2), HELD_OUT), ((4, 6), NEW))
        )
        kept = promise(mixture(before), labels(before), seed)
        new = simulated(mixture(after), labels(after), seed)
        found = expect(new, kept, LEVEL)["rmse"]
        assert found.actual is not None
        hits.append(found.lower <= found.actual <= found.upper)
        middle, error = float(mixture(after).total().mean()), math.sqrt(2 / NEW)
        naive.append(abs(found.actual**2 / middle - 1) < 1.64 * error)
    assert enough(hits)
    assert np.mean(naive) < 0.3


def classes(x: torch.Tensor, temperature: float) -> CategoricalMixture:
    """P(second) = 1 / (1 + e^(−3 x / T))."""
    return CategoricalMixture(torch.stack([0 * x, 3 * x / temperature], -1).unsqueeze(0))


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_intervals_contain_the_scores_of_classes(temperature: float) -> None:
    """New rows are undecided ones; below 1 the predictions are too sure, as held-out rows show."""
    found = []
    for seed in range(REPETITIONS):
        random = np.random.default_rng(seed)
        before = torch.from_numpy(random.uniform(-1, 1, 2 * HELD_OUT))
        after = torch.from_numpy(random.uniform(-0.4, 0.4, NEW))
        draws = [
            torch.from_numpy(random.random(len(x)) < 1 / (1 + np.exp(-3 * x.numpy()))).long()
            for x in (before, after)
        ]
        kept = promise(classes(before, temperature), draws[0], seed)
        new = simulated(classes(after, temperature), draws[1], seed)
        found.append(expect(new, kept, LEVEL))
    assert {*found[0]} == {"accuracy", "log_likelihood", "brier"}
    for name in found[0]:
        assert enough(inside(found, name)), name
    grid = np.linspace(-0.4, 0.4, 2001)
    true = np.mean(1 / (1 + np.exp(-3 * np.abs(grid))))
    assert np.mean([one["accuracy"].expected for one in found]) == pytest.approx(true, abs=0.025)


@pytest.mark.parametrize(
    ("flagged", "rows", "leaves"),
    [(10, 1_000, False), (40, 1_000, False), (150, 1_000, True), (1, 2, False), (9, 9, True)],
)
def test_rows_unlike_training_are_too_many(flagged: int, rows: int, *, leaves: bool) -> None:
    detector = Detector("surprise", threshold=2.0, false_alarm_rate=0.01, rows=1_000)
    assert compare_unlike(flagged, rows, detector).leaves == leaves


WORLDS = 20_000
# Of the largest distance between two distribution functions, times √n: exceeded with 1e-6.
KOLMOGOROV = 2.7


def noise() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_labels_of_a_gaussian_mixture_are_those_of_its_samples() -> None:
    means = torch.tensor([[0.0, 5.0], [10.0, -5.0]], dtype=torch.float64)
    spread, each = torch.full_like(means, 0.3), torch.full_like(means, 0.5)
    mixture = NumberMixture.gaussian(means, each, Integrated(spread, each))
    labels = draw_labels(mixture, WORLDS, noise())
    for sample, part in enumerate(labels.chunk(2)):
        expected = means[sample].numpy()
        assert part.mean(0).numpy() == pytest.approx(expected, abs=5 * np.sqrt(0.8 / WORLDS * 2))
        assert part.var(0).numpy() == pytest.approx([0.8, 0.8], rel=0.08)


@pytest.mark.parametrize(
    "case",
    [
        Case("log", "logistic", 3),
        Case("identity", "normal", 2),
        Case("logit", "normal", 2, atoms=(0.0,)),
        Case("power", "logistic", 2, atoms=(0.0,), integer=True),
    ],
    ids=str,
)
def test_labels_of_a_shape_follow_its_distribution_function(case: Case) -> None:
    mixture = case.mixture
    labels = draw_labels(mixture, WORLDS, noise())
    for row in range(labels.shape[1]):
        found = labels[:, row]
        points = found.unique()[:: max(1, len(found.unique()) // 200)]
        one = mixture.of_rows(torch.tensor([row]))
        stated = torch.cat([one.cdf(point.view(1)) for point in points])
        actual = (found.unsqueeze(0) <= points.unsqueeze(1)).double().mean(1)
        distance = float((stated - actual).abs().max())
        assert distance * np.sqrt(WORLDS) < KOLMOGOROV


def test_classes_are_as_frequent_as_each_sample_says() -> None:
    probabilities = torch.tensor([[[0.7, 0.2, 0.1]], [[0.0, 0.5, 0.5]]], dtype=torch.float64)
    labels = draw_labels(CategoricalMixture(probabilities.log()), WORLDS, noise())
    for sample, part in enumerate(labels.chunk(2)):
        wanted = probabilities[sample, 0].numpy()
        counts = np.bincount(part[:, 0].numpy(), minlength=3)
        assert counts[wanted == 0].sum() == 0
        possible = wanted > 0
        test = stats.chisquare(counts[possible], len(part) * wanted[possible])
        assert test.pvalue > 1e-6
