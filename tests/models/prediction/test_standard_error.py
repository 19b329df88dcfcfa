"""The Monte-Carlo error of every output, compared with its spread over seeds or repetitions."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm
from torch import Tensor

from models.likelihoods import expected_noise
from models.prediction.influence import ERROR, all_errors
from models.prediction.predictive import CategoricalMixture, GaussianMixture
from models.prediction.sobol import Sobol
from models.prediction.standard_error import (
    block_size,
    even_error,
    one_dimensional_share,
    standard_error,
    whole_blocks,
)

REPETITIONS = 400  # a standard deviation is known to 1/√800 = 3.5 %


def _randn(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_the_share_within_strata_is_that_of_a_stratified_normal() -> None:
    """1 for one stratum; for two 1 − E|z|² = 1 − 2/π."""
    assert one_dimensional_share(1) == pytest.approx(1.0)
    assert one_dimensional_share(2) == pytest.approx(1 - 2 / math.pi)
    edges = norm.ppf(np.arange(9) / 8)
    means = [8 * quad(lambda z: z * norm.pdf(z), a, b)[0] for a, b in pairwise(edges)]
    assert one_dimensional_share(8) == pytest.approx(1 - np.mean(np.square(means)))


def test_blocks_are_nets_of_the_sequence_within_members() -> None:
    assert block_size((100,)) == 8
    assert block_size((32,)) == 4
    assert block_size((8,)) == 1
    assert whole_blocks((10, 10, 12), 4) == ((0, 2), (12, 2), (20, 3))


@pytest.mark.parametrize("samples", [30, 100, 300])
def test_the_error_of_interactions_is_that_over_seeds(samples: int) -> None:
    """Σ z_i + w Σ z_i z_j over pairs far apart, in 60 coordinates.

    The sum of coordinates is integrated nearly exactly, so that V₁ is far too large. Pairs are as
    if independent. Bounds: the blocks' own 25 to 40 % in the single value, √ of its mean over
    seeds is much closer; pairs of Sobol coordinates differ, which is averaged over 30 pairs.
    """
    sobol = Sobol.build(60)

    def function(z: Tensor) -> Tensor:
        return z.sum(1, keepdim=True) + (z[:, :30] * z[:, 30:]).sum(1, keepdim=True)

    runs = [function(sobol.normals(seed, 0, samples).double()) for seed in range(200)]
    actual = torch.stack([run.mean(0) for run in runs]).std(0).item()
    stated = math.sqrt(np.mean([even_error(run).square().item() for run in runs]))
    naive = math.sqrt(np.mean([standard_error(run).square().item() for run in runs]))
    assert 0.7 < actual / stated < 1.3
    assert actual / naive < 0.75  # √(30/90) = 0.58


def test_the_error_of_members_does_not_count_their_differences() -> None:
    """Two members with different means: the error is that of the samples within each."""
    sobol, member = Sobol.build(8), torch.arange(2).repeat_interleave(50)

    def run(seed: int) -> Tensor:
        z = sobol.normals(seed, 0, 100).double()
        return (z[:, :4].prod(1) + z[:, 4:].prod(1) + 100.0 * member).unsqueeze(1)

    runs = [run(seed) for seed in range(200)]
    actual = torch.stack([values.mean(0) for values in runs]).std(0).item()
    stated = math.sqrt(np.mean([even_error(v, member).square().item() for v in runs]))
    assert 0.6 < actual / stated < 1.4


def _check(errors: list[dict[str, Tensor]], answers: dict[str, list[Tensor]]) -> None:
    """Actual ÷ stated within 15 %: four errors of the standard deviation, and of order 1/S."""
    for name, values in answers.items():
        actual = torch.stack(values).std(0)
        stated = torch.stack([one[ERROR + name].square() for one in errors]).mean(0).sqrt()
        torch.testing.assert_close(actual, stated, rtol=0.15, atol=1e-12, msg=name)


@pytest.mark.parametrize("scale", [1.0, 0.6, 1.8])
def test_every_output_of_numbers_states_its_error(scale: float) -> None:
    """Independent samples of means and noise, calibrated by a factor on variances."""
    levels = {"lower_0.9": 0.05, "median": 0.5, "upper_0.9": 0.95}
    errors: list[dict[str, Tensor]] = []
    answers: dict[str, list[Tensor]] = {}
    for seed in range(REPETITIONS):
        random = _randn(3, 200, 1, seed=seed)
        raw = GaussianMixture(random[0], torch.exp(0.5 * random[1]), 0.1 * random[2].square())
        mixture = raw.scaled(scale)
        bounds = dict(zip(levels, mixture.quantiles(list(levels.values())), strict=True))
        wide = mixture.mean() + 2 * mixture.total().sqrt()
        bounds["conformal_upper_0.9"] = wide
        errors.append(all_errors(mixture, raw, bounds, even=False))
        found = bounds | {
            "mean": mixture.mean(),
            "aleatoric_variance": mixture.aleatoric(),
            "epistemic_variance": mixture.epistemic(),
            "total_variance": mixture.total(),
        }
        for name, value in found.items():
            answers.setdefault(name, []).append(value)
    _check(errors, answers)


def test_every_output_of_classes_states_its_error() -> None:
    """No probability is near ½, where p(1 − p) has no first order."""
    errors: list[dict[str, Tensor]] = []
    answers: dict[str, list[Tensor]] = {}
    for seed in range(REPETITIONS):
        mixture = CategoricalMixture(_randn(200, 1, 3, seed=seed) + 2 * torch.arange(3.0))
        errors.append(all_errors(mixture, mixture, {}, even=False))
        found = {
            "probabilities": mixture.mean(),
            "aleatoric_variance": mixture.aleatoric(),
            "epistemic_variance": mixture.epistemic(),
            "total_variance": mixture.aleatoric() + mixture.epistemic(),
            "predictive_entropy": mixture.total_entropy(),
            "expected_entropy": mixture.expected_entropy(),
            "mutual_information": mixture.mutual_information(),
        }
        for name, value in found.items():
            answers.setdefault(name, []).append(value)
    _check(errors, answers)


@pytest.mark.parametrize(
    ("mean", "variance"), [(-1.0, 0.5), (5.5, 2.0), (-17.0, 4.0), (2.0, 60.0), (0.0, 0.0)]
)
def test_the_expected_noise_is_the_integral_within_the_likelihoods_bounds(
    mean: float, variance: float
) -> None:
    def integrand(z: float) -> float:
        log_variance = min(max(mean + math.sqrt(variance) * z, -16.0), 6.0)
        return math.exp(log_variance) * float(norm.pdf(z))

    kinks = [] if not variance else [(b - mean) / math.sqrt(variance) for b in (-16.0, 6.0)]
    inside = [z for z in kinks if abs(z) < 12]
    expected, _ = quad(integrand, -12, 12, points=inside or None, limit=400)
    of = torch.tensor([[mean]], dtype=torch.float64), torch.tensor([[variance]]).double()
    assert expected_noise(*of).item() == pytest.approx(expected, rel=1e-6)
