"""The draw of many pre-activations, whose gradient is written by hand."""

import torch
from torch import Tensor
from torch.autograd import gradcheck

from models.layers.layer import _LARGE, _Draw, gaussian_draw


def _parts(size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    mean, noise = torch.randn(2, size, generator=random, dtype=dtype)
    variance = torch.rand(size, generator=random, dtype=dtype) + 0.1
    return mean.requires_grad_(), variance.requires_grad_(), noise


def test_the_gradient_is_the_numerical_one() -> None:
    assert gradcheck(_Draw.apply, _parts(20, torch.float64))  # type: ignore[no-untyped-call]


def test_many_values_are_drawn_as_few_are() -> None:
    """Beside a variance of 0, whose gradient is 0 instead of infinite."""
    mean, variance, noise = _parts(_LARGE, torch.float32)
    with torch.no_grad():
        variance[:100] = 0
    drawn = gaussian_draw(mean, variance, noise)
    weights = torch.linspace(-1, 1, _LARGE)
    (drawn * weights).sum().backward()
    found = [part.grad for part in (mean, variance)]
    expected = mean.detach() + variance.detach().sqrt() * noise
    by_variance = weights * noise / (2 * variance.detach().sqrt())
    by_variance[:100] = 0
    torch.testing.assert_close([drawn.detach(), *found], [expected, weights, by_variance])
