"""Pruning of weights and of units by their signal-to-noise ratio removes what it says."""

import math
from itertools import pairwise

import pytest
import torch

from models.config import MLPConfig
from models.networks import MLP
from models.networks.pruning import prune, prune_units, unit_ratios
from models.posteriors.mean_field import MeanFieldNormal, softplus_inverse


@pytest.fixture
def posterior() -> MeanFieldNormal:
    loc = torch.tensor([0.1, -4.0, 2.0, -0.5, 3.0, 0.0])
    scale = [1.0, 1.0, 4.0, 0.1, 10.0, 1e-3]
    return MeanFieldNormal(loc, torch.tensor([softplus_inverse(s) for s in scale]))


def test_the_lowest_ratios_go_first(posterior: MeanFieldNormal) -> None:
    pruned = prune(posterior, 0.5)
    assert pruned.mask is not None
    assert pruned.mask.tolist() == [False, True, True, True, False, False]
    assert pruned.num_weights == 3


def test_pruning_further_starts_from_what_is_left(posterior: MeanFieldNormal) -> None:
    """After fine-tuning a pruned weight may rank high again by its frozen numbers: it stays out."""
    half = prune(posterior, 0.5)
    revived = MeanFieldNormal(half.loc + 100, half.rho, half.mask)
    further = prune(revived, 4 / 6)
    assert further.mask is not None
    assert half.mask is not None
    assert further.num_weights == 2
    assert not (further.mask & ~half.mask).any()


NETWORK = MLP.build(MLPConfig(hidden=(6, 4)), 5, 2)


@pytest.fixture
def network_posterior() -> MeanFieldNormal:
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
    network_posterior: MeanFieldNormal, fraction: float
) -> None:
    pruned = prune_units(network_posterior, NETWORK.layout, NETWORK.dense, fraction)
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


def test_the_units_of_the_lowest_ratios_go_first(network_posterior: MeanFieldNormal) -> None:
    ratios = unit_ratios(network_posterior, NETWORK.layout, NETWORK.dense)
    pruned = prune_units(network_posterior, NETWORK.layout, NETWORK.dense, 0.5)
    assert pruned.mask is not None
    mask = NETWORK.layout.unflatten(pruned.mask)
    for ratio, layer in zip(ratios, NETWORK.dense, strict=False):
        kept = mask[layer.bias]
        assert 0 < int(kept.sum()) < len(kept)
        assert float(ratio[kept].min()) >= float(ratio[~kept].max())
