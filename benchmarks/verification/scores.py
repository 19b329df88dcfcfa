"""What is said about scores: calibration errors, standard errors, comparisons of methods.

Models are predictive distributions whose truth is known: right ones, shifted ones, and linear
classifiers whose fresh rows can be drawn at will.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from benchmarks.verification.check import Check, Scale
from models.config import Json
from models.evaluation.metrics import classification_scores, regression_scores, summarise
from models.evaluation.ranking import rank, recommend_variant
from models.evaluation.reliability import (
    CalibrationError,
    equal_counts,
    equal_widths,
    expected_calibration_error,
)
from models.likelihoods.class_mixture import CategoricalMixture
from models.likelihoods.number_mixture import NumberMixture

METHODS = 5


def checks(scale: Scale) -> list[Check]:
    """Perfect and trained classifiers, coverage of ± 2 standard errors, five equal methods."""
    times = 1_000 if scale == "full" else 100
    return [
        *_perfect(times),
        *_trained(times // 2),
        *_coverage(times // 2),
        *_comparisons(times),
    ]


def _perfect(times: int) -> Iterator[Check]:
    """Within four standard errors of the simulation: wrong once in 16,000."""
    for name, bins in (("equal widths", equal_widths), ("equal counts", equal_counts)):
        for rows in (30, 100, 1_000):
            generator = np.random.default_rng(rows)
            repeats = times if rows < 1_000 else times // 4
            found = [_perfect_one(rows, bins, generator) for _ in range(repeats)]
            raw, expected, debiased = (
                np.array([getattr(one, which) for one in found])
                for which in ("raw", "expected", "debiased")
            )
            four = 4 * raw.std() / repeats**0.5
            about = f"perfect classifier, {rows} rows, bins of {name}: "
            mean = float(expected.mean())
            yield Check(
                f"{about}raw ECE", f"{mean:.3f}, as stated", raw.mean(), mean - four, mean + four
            )
            four = 4 * debiased.std() / repeats**0.5
            yield Check(f"{about}debiased ECE", "0", debiased.mean(), -four, four)


def _perfect_one(
    rows: int, bins: Callable[[Tensor], object], generator: np.random.Generator
) -> CalibrationError:
    confidence = 0.5 + 0.5 * generator.beta(2, 1, rows)
    correct = (generator.random(rows) < confidence).astype(float)
    p, c = torch.from_numpy(confidence), torch.from_numpy(correct)
    return expected_calibration_error(p, c, bins(p))  # type: ignore[arg-type]


def _trained(times: int) -> Iterator[Check]:
    """A logistic regression on 130 of 200 rows: its ECE on 30 others, and on 20,000 fresh ones.

    The debiased error may be too low by 0.58 of what a perfect model would score, and not too high.
    """
    generator, own, fresh, expected, raw = np.random.default_rng(0), [], [], [], []
    for _ in range(times // 5):
        slope = generator.standard_normal(6)
        fitted = _logistic(*_labelled(130, slope, generator))
        small = _ece(fitted, *_labelled(30, slope, generator))
        own.append(small.debiased)
        raw.append(small.raw)
        expected.append(small.expected)
        fresh.append(_ece(fitted, *_labelled(20_000, slope, generator)).raw)
    four = 4 * np.std(own) / len(own) ** 0.5
    truth, most = float(np.mean(fresh)), 0.58 * float(np.mean(expected))
    yield Check(
        f"trained classifiers, 30 held-out rows: debiased ECE (raw {np.mean(raw):.3f}) minus "
        "that of 20,000 fresh rows",
        f"−{most:.3f} to 0",
        float(np.mean(own)) - truth,
        -most - four,
        four,
    )


def _labelled(
    rows: int, slope: np.ndarray, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    x = generator.standard_normal((rows, len(slope)))
    return x, (generator.random(rows) < 1 / (1 + np.exp(-x @ slope))).astype(float)


def _logistic(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Newton's method with a unit Gaussian prior."""
    weights = np.zeros(x.shape[1])
    for _ in range(20):
        p = 1 / (1 + np.exp(-x @ weights))
        hessian = (x.T * (p * (1 - p))) @ x + np.eye(len(weights))
        weights += np.linalg.solve(hessian, x.T @ (y - p) - weights)
    return weights


def _ece(weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> CalibrationError:
    p = torch.from_numpy(1 / (1 + np.exp(-x @ weights)))
    confidence = torch.maximum(p, 1 - p)
    correct = ((p > 0.5) == torch.from_numpy(y > 0.5)).double()
    return expected_calibration_error(confidence, correct, equal_widths(confidence))


def _coverage(times: int) -> Iterator[Check]:
    """± 2 standard errors hold 95.4 % if scores are Gaussian; skewed ones of 60 rows somewhat less.

    Allowed: 90 to 99 %, ± four standard errors of the simulation.
    """
    generator = torch.Generator().manual_seed(0)
    four = 4 * (0.95 * 0.05 / times) ** 0.5
    for draw, names in (
        (_numbers, ("log_likelihood", "rmse", "mae", "crps")),
        (_classes, ("log_likelihood", "accuracy", "brier", "ece_debiased")),
    ):
        truth: Json = {**draw(400_000, generator), "ece_debiased": 0.0}
        found = [draw(60, generator) for _ in range(times)]
        for name in names:
            inside = [
                abs(one[name] - truth[name]) <= 2 * one["standard_errors"][name] for one in found
            ]
            yield Check(
                f"truth within ± 2 standard errors, 60 rows: {name} of {draw.__name__[1:]}",
                "0.90 to 0.99",
                float(np.mean(inside)),
                0.90 - four,
                min(1.0, 0.99 + four),
            )


def _numbers(rows: int, generator: torch.Generator) -> Json:
    """Metrics of N(m, 1) for targets that are distributed so."""
    mean = torch.randn(rows, generator=generator).double()
    target = mean + torch.randn(rows, generator=generator).double()
    mixture = NumberMixture.gaussian(mean.unsqueeze(0), torch.ones(1, rows).double())
    return summarise(regression_scores(mixture, target))


def _classes(rows: int, generator: torch.Generator) -> Json:
    """Metrics of right probabilities of three classes."""
    probs = (2 * torch.randn(rows, 3, generator=generator).double()).softmax(-1)
    truth = probs.multinomial(1, generator=generator).squeeze(1)
    return summarise(classification_scores(CategoricalMixture(probs.log().unsqueeze(0)), truth))


def _comparisons(times: int) -> Iterator[Check]:
    """Five methods that are equal, or of which one is better by one standard error."""
    four = 4 * (0.05 * 0.95 / times) ** 0.5
    for rows in (30, 200):
        generator, false, optimism, actual = np.random.default_rng(rows), 0, [], []
        for _ in range(times):
            scores = _equal_methods(rows, generator)
            found = rank(scores)
            assert found is not None
            false += any(found.worse)
            optimism.append(found.optimism)
            actual.append(float(scores[found.best].mean() - torch.stack(scores).mean()))
        about = f"{METHODS} equal methods, {rows} rows"
        yield Check(f"{about}: any is called worse", "at most 0.05", false / times, 0, 0.05 + four)
        yield Check(
            f"{about}: stated bias of the winner's score ÷ true bias ({np.mean(actual):.3f})",
            "1",
            float(np.mean(optimism) / np.mean(actual)),
            0.8,
            1.25,
        )
    generator = np.random.default_rng(1)
    fractions = (0.0, 0.3, 0.5, 0.7, 0.9)
    chosen = [
        recommend_variant(dict(zip(fractions, _equal_methods(40, generator), strict=True)))[0]
        for _ in range(times)
    ]
    yield Check(
        "four pruned variants as good as the full model: any is recommended",
        "at most 0.05",
        float(np.mean([one > 0 for one in chosen])),
        0,
        0.05 + four,
    )
    yield _power(times, generator)


def _equal_methods(rows: int, generator: np.random.Generator) -> list[Tensor]:
    """Skewed scores, as log likelihoods are; most of them is common to all methods."""
    common = 3 * generator.standard_normal(rows)
    own = -(generator.standard_normal((METHODS, rows)) ** 2)
    return [torch.from_numpy(common + one) for one in own]


def _power(times: int, generator: np.random.Generator) -> Check:
    """A method that is behind by six standard errors of the difference is called worse."""
    found = []
    for _ in range(times):
        scores = _equal_methods(200, generator)
        scores[0] -= 6 * (2 * 2 / 200) ** 0.5  # each has a variance of 2
        ranking = rank(scores)
        assert ranking is not None
        found.append(ranking.worse[0])
    return Check(
        "a method behind the others by 6 standard errors is called worse",
        "at least 0.95",
        float(np.mean(found)),
        0.95,
        1,
    )
