"""The reference of the engine: sampling as a few lines of torch, with fresh noise."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.shapes import Shape

SAMPLES = 100
_SCALE = 0.05


@dataclass(frozen=True)
class PlainSampling:
    """A network of independent normal weights with these means and variances, by layer.

    Speed does not depend on their values, so they are random.
    """

    loc: tuple[Tensor, ...]
    variance: tuple[Tensor, ...]

    @classmethod
    def build(cls, shape: Shape) -> "PlainSampling":
        random = torch.Generator().manual_seed(0)
        widths = (shape.inputs, *shape.hidden, shape.outputs)
        loc = tuple(_SCALE * torch.randn(a, b, generator=random) for a, b in pairwise(widths))
        return cls(loc, tuple(torch.full_like(one, _SCALE**2) for one in loc))

    def moments(self, x: Float[Tensor, "rows inputs"]) -> tuple[Tensor, Tensor]:
        """Mean and variance of the outputs over the samples: local reparameterisation.

        Each layer draws its pre-activations from N(hμ, h²σ²) (Kingma et al. 2015, eq. 6).
        """
        hidden = x.expand(SAMPLES, *x.shape)
        for number, (loc, variance) in enumerate(zip(self.loc, self.variance, strict=True)):
            mean, spread = hidden @ loc, hidden.square() @ variance
            hidden = mean + spread.sqrt() * torch.randn(mean.shape)
            if number < len(self.loc) - 1:
                hidden = hidden.relu()
        return hidden.mean(0), hidden.var(0)
