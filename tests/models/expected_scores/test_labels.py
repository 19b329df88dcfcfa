"""Simulated labels have the distribution that was predicted, sample by sample."""

import numpy as np
import pytest
import torch
from scipy import stats

from models.expected_scores.simulation import draw_labels
from models.likelihoods.mixture import CategoricalMixture
from models.likelihoods.number_mixture import Integrated, NumberMixture
from tests.models.prediction.shaped_cases import Case

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
