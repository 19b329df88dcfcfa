"""SNR pruning removes what it says, everywhere it matters."""

import pytest
import torch

from models.posteriors.mean_field import MeanFieldNormal, softplus_inverse
from models.posteriors.pruning import prune, signal_to_noise


@pytest.fixture
def posterior() -> MeanFieldNormal:
    loc = torch.tensor([0.1, -4.0, 2.0, -0.5, 3.0, 0.0])
    scale = [1.0, 1.0, 4.0, 0.1, 10.0, 1e-3]
    return MeanFieldNormal(loc, torch.tensor([softplus_inverse(s) for s in scale]))


def test_the_ratio_is_mean_over_deviation(posterior: MeanFieldNormal) -> None:
    expected = torch.tensor([0.1, 4.0, 0.5, 5.0, 0.3, 0.0])
    torch.testing.assert_close(signal_to_noise(posterior), expected)


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


def test_ties_are_broken_the_same_way_every_time() -> None:
    q = MeanFieldNormal(torch.zeros(100), torch.zeros(100))
    first, second = prune(q, 0.3), prune(q, 0.3)
    assert first.mask is not None
    assert second.mask is not None
    assert torch.equal(first.mask, second.mask)
    assert first.num_weights == 70


@pytest.mark.parametrize("fraction", [-0.1, 1.0])
def test_impossible_fractions_are_refused(posterior: MeanFieldNormal, fraction: float) -> None:
    with pytest.raises(ValueError, match=str(fraction)):
        prune(posterior, fraction)
