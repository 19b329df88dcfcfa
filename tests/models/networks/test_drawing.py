"""The draw of many pre-activations, whose gradient is written by hand."""

import torch
from torch import Tensor
from torch.autograd import gradcheck

from models.layers.layer import _Draw


def _parts(size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    mean, noise = torch.randn(2, size, generator=random, dtype=dtype)
    variance = torch.rand(size, generator=random, dtype=dtype) + 0.1
    return mean.requires_grad_(), variance.requires_grad_(), noise


def test_the_gradient_is_the_numerical_one() -> None:
    assert gradcheck(_Draw.apply, _parts(20, torch.float64))  # type: ignore[no-untyped-call]
