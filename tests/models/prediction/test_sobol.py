"""Sobol points have the properties that define them, whatever the shift."""

import math

import pytest
import torch
from scipy.stats import kstest

from models.inference.noise import BITS, Sobol


@pytest.fixture(scope="module")
def sobol() -> Sobol:
    return Sobol.build(300)


def test_each_coordinate_is_stratified(sobol: Sobol) -> None:
    """Of the first 2^k points exactly one lies in each interval of length 2^−k."""
    for bits in (1, 4, 8):
        points = sobol.points(3, 0, 2**bits) >> (BITS - bits)
        expected = torch.arange(2**bits, dtype=torch.int32).unsqueeze(1).expand(-1, 300)
        assert torch.equal(points.sort(0).values, expected)


def test_the_first_two_coordinates_fill_every_elementary_rectangle(sobol: Sobol) -> None:
    points = sobol.points(5, 0, 256)[:, :2].long()
    for first in range(9):
        cells = (points[:, 0] >> (BITS - first)) * 2 ** (8 - first)
        cells += points[:, 1] >> (BITS - 8 + first)
        assert len(cells.unique()) == 256


def test_points_do_not_depend_on_how_they_are_asked_for(sobol: Sobol) -> None:
    whole = sobol.points(1, 0, 300)
    assert torch.equal(torch.cat([sobol.points(1, 0, 37), sobol.points(1, 37, 300)]), whole)
    assert torch.equal(sobol.points(1, 299, 300), whole[299:])


def test_normals_are_standard_and_finite(sobol: Sobol) -> None:
    """Over 1,000 seeds each point is standard normal: the shift alone makes it uniform."""
    firsts = torch.stack([sobol.normals(seed, 13, 14)[0, :20] for seed in range(1000)])
    assert kstest(firsts.flatten().numpy(), "norm").pvalue > 1e-3
    extremes = torch.tensor([0, 2**BITS - 1]) - 2 ** (BITS - 1)
    values = ((extremes.float() + 0.5) / 2 ** (BITS - 1)).erfinv() * math.sqrt(2)
    assert values.isfinite().all()
    assert values[0] == -values[1]
