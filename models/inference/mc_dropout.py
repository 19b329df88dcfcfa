"""Monte-Carlo dropout: units are dropped at random in training and in prediction.

A draw is the network with a mask z on every hidden layer: its units are multiplied by z/(1 − p),
which keeps their mean. Weight decay is the prior N(0, σ²) on the weights.
Source: Gal and Ghahramani 2016 (arXiv 1506.02142).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import DropoutConfig, KLConfig
from models.features.rows import Rows
from models.inference.method import FIXED, Draw, pack_point, unpack_point
from models.inference.objectives import Loss, negative_elbo
from models.inference.point import initial_weights, negative_log_prior
from models.likelihoods import Likelihood
from models.networks import Network, point_shape
from models.posteriors.layout import Layout
from models.posteriors.priors import GaussianPrior
from models.tensors import TensorRecord
from models.training.distributed import Part


@dataclass(frozen=True)
class DropoutState(TensorRecord):
    """One weight vector, and the dropout rate of each hidden layer."""

    weights: Float[Tensor, "weights"]
    rates: Float[Tensor, "hidden"]
    point: dict[str, Tensor]

    @property
    def num_weights(self) -> int:
        return len(self.weights)

    @property
    def num_draws(self) -> int | None:
        return None

    def parameters(self) -> list[Tensor]:
        return [self.weights, *self.point.values()]

    def tensors(self) -> list[Tensor]:
        return [*self.parameters(), self.rates]

    def pack(self) -> dict[str, Tensor]:
        own = {"weights": self.weights.detach().cpu(), "rates": self.rates.cpu()}
        return {**pack_point(self.point), **own}

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "DropoutState":
        return cls(tensors["weights"], tensors["rates"], unpack_point(tensors))


@dataclass(frozen=True)
class MCDropout:
    """The method bound to a network, a likelihood and the number of rows."""

    kl: ClassVar[KLConfig] = FIXED

    network: Network
    likelihood: Likelihood
    prior: GaussianPrior
    rate: float
    num_data: int

    @classmethod
    def build(
        cls, network: Network, likelihood: Likelihood, config: DropoutConfig, num_data: int
    ) -> "MCDropout":
        prior = GaussianPrior(config.prior_sigma)
        return cls(network, likelihood, prior, config.rate, num_data)

    @property
    def layout(self) -> Layout:
        return self.network.layout

    @property
    def members(self) -> int:
        return self.layout.members

    @property
    def num_parameters(self) -> int:
        return self.layout.num_weights

    def init(self, generator: torch.Generator) -> DropoutState:
        weights = initial_weights(self.network, self.likelihood, generator)
        rates = torch.full((len(self.network.mask_widths),), self.rate)
        shape = point_shape(self.network)
        point = {name: torch.full(shape, v) for name, v in self.likelihood.parameters.items()}
        return DropoutState(weights, rates, point)

    def loss(
        self,
        state: DropoutState,
        batch: Rows,
        kl_weight: float,
        generator: torch.Generator,
        part: Part | None = None,
    ) -> Loss:
        """Return −log P(D | w, z) and −log P(w) per row, with different masks for every row.

        Noise is drawn for the whole mini-batch, so that a row's noise does not depend on the part.
        """
        part, x = part or Part.whole(len(batch)), batch.inputs
        noise = [
            x.new_empty(part.total, width).normal_(generator=generator)[part.rows]
            for width in self.network.mask_widths
        ]
        weights = self.layout.unflatten(state.weights)
        outputs = self.network(weights, x, masks(noise, state.rates))
        nll = -self.likelihood.log_prob(outputs, batch.targets, state.point)
        penalty = negative_log_prior(self.prior, state.weights)
        return negative_elbo(batch.weigh(nll), penalty, self.num_data, kl_weight, part)

    def draw(self, state: DropoutState, streams: int, generator: torch.Generator) -> Draw:
        """Draw masks for each stream, the same at all steps; the penalty is −log P(w)."""
        weights = state.weights
        noise = [
            weights.new_empty(streams, width).normal_(generator=generator)
            for width in self.network.mask_widths
        ]
        penalty = negative_log_prior(self.prior, weights)
        return Draw(self.layout.unflatten(weights), penalty, masks(noise, state.rates))

    def collect(self, state: DropoutState) -> None:
        """Do nothing: only the last or the best state is used."""


def masks(
    noise: Sequence[Float[Tensor, "... _"]], rates: Float[Tensor, "hidden"]
) -> list[Float[Tensor, "... _"]]:
    """Return z/(1 − p) of each hidden layer; z = 0 where the normal is below the p-quantile."""
    bounds = torch.special.ndtri(rates.double()).to(rates)
    return [
        (block > bound).to(block.dtype) / (1 - rate)
        for block, bound, rate in zip(noise, bounds, rates, strict=True)
    ]
