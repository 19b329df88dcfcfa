"""Pruning of units removes whole units, the noisiest first, and as many weights as it says."""

import math
from itertools import pairwise

import pytest
import torch

from models.config import MLPConfig
from models.networks import MLP
from models.posteriors.mean_field import MeanFieldNormal, softplus_inverse
from models.posteriors.unit_pruning import prune_units, unit_ratios

NETWORK = MLP.build(MLPConfig(hidden=(6, 4)), 5, 2)


@pytest.fixture
def posterior() -> MeanFieldNormal:
    size = NETWORK.layout.num_weights
    loc = torch.randn(size, generator=torch.Generator().manual_seed(0))
    return MeanFieldNormal(loc, torch.full((size,), softplus_inverse(0.5)))


def test_the_ratio_is_that_of_incoming_and_outgoing_weights_together() -> None:
    """A unit with 5 incoming weights of ratio 2 and 4 outgoing ones of ratio 1."""
    weights = {name: torch.zeros(shape) for name, shape in NETWORK.layout.shapes.items()}
    weights["dense0.weight"][3] = 1.0
    weights["dense1.weight"][:, 3] = 0.5
    loc = NETWORK.layout.flatten(weights)
    rho = torch.full_like(loc, softplus_inverse(0.5))
    first, second = unit_ratios(MeanFieldNormal(loc, rho), NETWORK.layout, NETWORK.dense)
    expected = torch.zeros(6)
    expected[3] = math.sqrt((5 * 2**2 + 4 * 1**2) / 9)
    torch.testing.assert_close(first, expected)
    # Each unit of the second layer has one incoming weight of ratio 1, and six plus two weights.
    torch.testing.assert_close(second, torch.full((4,), math.sqrt(1 / 8)))


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.6, 0.9])
def test_whole_units_go_until_the_fraction_is_reached(
    posterior: MeanFieldNormal, fraction: float
) -> None:
    pruned = prune_units(posterior, NETWORK.layout, NETWORK.dense, fraction)
    assert pruned.mask is not None
    mask = NETWORK.layout.unflatten(pruned.mask)
    widths = []
    for one, following in ((NETWORK.dense[0], NETWORK.dense[1]), NETWORK.dense[1:]):
        kept = mask[one.bias]
        widths.append(int(kept.sum()))
        assert torch.equal(mask[one.weight].any(1), kept)
        assert torch.equal(mask[following.weight].any(0), kept)
    dense = [5, *widths, 2]
    # What is left is a dense network of these widths, without a gap.
    assert pruned.num_weights == sum((a + 1) * b for a, b in pairwise(dense))
    assert pruned.num_weights <= (1 - fraction) * NETWORK.layout.num_weights or widths == [1, 1]


def test_the_lowest_ratios_go_first(posterior: MeanFieldNormal) -> None:
    ratios = unit_ratios(posterior, NETWORK.layout, NETWORK.dense)
    pruned = prune_units(posterior, NETWORK.layout, NETWORK.dense, 0.5)
    assert pruned.mask is not None
    mask = NETWORK.layout.unflatten(pruned.mask)
    for ratio, layer in zip(ratios, NETWORK.dense, strict=False):
        kept = mask[layer.bias]
        assert 0 < int(kept.sum()) < len(kept)
        assert float(ratio[kept].min()) >= float(ratio[~kept].max())


def test_pruned_weights_stay_pruned(posterior: MeanFieldNormal) -> None:
    half = torch.arange(len(posterior.loc)) % 2 == 0
    before = MeanFieldNormal(posterior.loc, posterior.rho, half)
    after = prune_units(before, NETWORK.layout, NETWORK.dense, 0.3)
    assert after.mask is not None
    assert not (after.mask & ~half).any()


@pytest.mark.parametrize("fraction", [-0.1, 1.0])
def test_impossible_fractions_are_refused(posterior: MeanFieldNormal, fraction: float) -> None:
    with pytest.raises(ValueError, match=str(fraction)):
        prune_units(posterior, NETWORK.layout, NETWORK.dense, fraction)


def test_a_network_without_units_is_refused() -> None:
    linear = MLP.build(MLPConfig(hidden=()), 5, 2)
    q = MeanFieldNormal(torch.zeros(12), torch.zeros(12))
    with pytest.raises(ValueError, match="no units to prune"):
        prune_units(q, linear.layout, linear.dense, 0.5)
