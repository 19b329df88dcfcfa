"""Monte-Carlo dropout: units are dropped at random in training and in prediction.

A draw is the network with a mask z on every hidden layer: its units are multiplied by z/(1 − p),
which keeps their mean. Weight decay is the prior N(0, σ²) on the weights: a column w of a matrix
that reads a masked unit is zw/(1 − p), and its KL, without what does not depend on w, is

    E‖zw/(1 − p)‖²/(2σ²) = ‖w‖²/(2σ²(1 − p)),    z ~ Bernoulli(1 − p).

Matrices that read unmasked inputs, and biases, have ‖w‖²/(2σ²). How far the predictions spread
follows from p and not from the data: they approximate no posterior's width.
Source: Gal and Ghahramani 2016 (arXiv 1506.02142), eq. 7 and appendix 4.2, with M = w/(1 − p).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from models.config import DropoutConfig
from models.exceptions import CorruptArtifact, InvalidData
from models.features.rows import Rows
from models.fitting.distributed import Part
from models.fitting.objectives import Loss, negative_elbo
from models.inference.method import (
    Draw,
    Functions,
    Method,
    State,
    check_point,
    check_tensor,
    named_point,
    unpack_point,
    with_last,
)
from models.inference.noise import NoiseCache, NoiseSource
from models.inference.point import DrawsState, initial_weights, negative_log_prior, repeated
from models.likelihoods import Likelihood
from models.networks import Network, point_shape
from models.posteriors.layout import Layout
from models.posteriors.priors import GaussianPrior

_UNMASKED = ("path.", "embedding.", ".hidden.")


@dataclass(frozen=True)
class DropoutState(State):
    """One weight vector, and the dropout rate of each hidden layer."""

    kind = "dropout"

    weights: Float[Tensor, "weights"]
    rates: Float[Tensor, "hidden"]
    point: dict[str, Tensor]

    @property
    def num_weights(self) -> int:
        return len(self.weights)

    def parameters(self) -> list[Tensor]:
        return [self.weights, *self.point.values()]

    def named(self) -> dict[str, Tensor]:
        return {"weights": self.weights, **named_point(self.point), "rates": self.rates}

    def source(self, network: Network) -> "DropoutDraws":
        return DropoutDraws(network, self.detach())

    def with_last_row(self, rows: int, width: int, seed: int) -> "DropoutState":
        """The mean of the others."""
        table = self.weights[: (rows - 1) * width].unflatten(0, (-1, width))
        return replace(self, weights=with_last(self.weights, rows, table.mean(0)))

    def at_mean(self) -> DrawsState:
        point = {name: value[None] for name, value in self.point.items()}
        return DrawsState(self.weights.detach().unsqueeze(0), point)

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "DropoutState":
        return cls(tensors["weights"], tensors["rates"], unpack_point(tensors))

    def check(self, network: Network, likelihood: Likelihood) -> None:
        check_point(self.point, likelihood, point_shape(network))
        check_tensor("weights", self.weights, (network.layout.num_weights,))
        check_tensor("rates", self.rates, (len(network.mask_widths),))
        if not bool(((self.rates >= 0) & (self.rates < 1)).all()):
            raise CorruptArtifact("rates must be probabilities below 1")


@dataclass(frozen=True)
class DropoutDraws:
    """One weight vector, with units dropped by the noise of (seed, layer, unit, sample)."""

    network: Network
    state: DropoutState
    cache: NoiseCache = field(default_factory=NoiseCache)
    bytes_per_sample: int = 0

    @cached_property
    def noise(self) -> NoiseSource:
        return NoiseSource(self.network.mask_widths)

    def functions(self, seed: int, start: int, stop: int) -> Functions:
        state = self.state
        drawn = self.cache.get(("monte_carlo", seed, start, stop), self.noise.draw)
        noise = [block.to(state.weights).unsqueeze(1) for block in drawn]
        point = {name: repeated(value, stop - start) for name, value in state.point.items()}
        weights = self.network.layout.unflatten(state.weights)
        return Functions(weights, point, masks(noise, state.rates))


@dataclass(frozen=True)
class MCDropout(Method):
    """Maximum a posteriori of the weights under masks, which predictions keep drawing."""

    settings = DropoutConfig
    stored = DropoutState
    reads_texts = True
    learns_keys = True

    config: DropoutConfig

    @classmethod
    def check(cls, config: DropoutConfig, network: Network) -> None:
        if not network.mask_widths:
            raise InvalidData(
                "mc_dropout drops hidden units, and this network has none: give it a hidden layer",
                "/network/hidden",
            )

    @cached_property
    def prior(self) -> GaussianPrior:
        return GaussianPrior(self.config.prior_sigma)

    def init(self, generator: Generator) -> DropoutState:
        weights = initial_weights(self.network, self.likelihood, generator)
        rates = torch.full((len(self.network.mask_widths),), self.config.rate)
        return DropoutState(weights, rates, self.initial_point())

    def loss(
        self, state: DropoutState, batch: Rows, kl_weight: float, noise: Generator, part: Part
    ) -> Loss:
        """Return −log P(D | w, z) and the KL per row, with different masks for every row."""
        x = batch.inputs
        blocks = [
            x.new_empty(part.total, width).normal_(generator=noise)[part.rows]
            for width in self.network.mask_widths
        ]
        weights = self.layout.unflatten(state.weights)
        outputs = self.products(self.network, weights, x, masks(blocks, state.rates))
        nll = -self.likelihood.log_prob(outputs, batch.targets, state.point)
        penalty = self._penalty(state)
        return negative_elbo(batch.weigh(nll), penalty, self.num_data, kl_weight, part)

    def draw(self, state: DropoutState, streams: int, generator: Generator) -> Draw:
        """Draw masks for each stream, the same at all steps; the penalty is the KL."""
        weights = state.weights
        noise = [
            weights.new_empty(streams, width).normal_(generator=generator)
            for width in self.network.mask_widths
        ]
        return Draw(self.layout.unflatten(weights), self._penalty(state), masks(noise, state.rates))

    def _penalty(self, state: DropoutState) -> Float[Tensor, ""]:
        """The KL up to a constant: −log P of weights divided by √(1 − p) where they read masks."""
        return negative_log_prior(self.prior, state.weights * self._widths.to(state.weights))

    @cached_property
    def _widths(self) -> Float[Tensor, "weights"]:
        """1/√(1 − p) of the weights that read masked units, 1 of the others."""
        names, wide = set(masked_matrices(self.layout)), (1 - self.config.rate) ** -0.5
        shapes = self.layout.shapes.items()
        return self.layout.flatten(
            {name: torch.full(shape, wide if name in names else 1.0) for name, shape in shapes}
        )


def masked_matrices(layout: Layout) -> list[str]:
    """Names of the matrices that read masked units: of each network all but the first.

    A path around the hidden layers reads inputs, and so do an embedding and the decoder that shares
    its matrix; a recurrent layer reads its own state without a mask.
    """
    matrices = [
        name
        for name in layout.shapes
        if name.endswith(".weight") and not any(part in name for part in _UNMASKED)
    ]
    # the part of a stack that a matrix belongs to, and its first matrix
    parts = [name.split(".")[0] if name.startswith("part") else "" for name in matrices]
    first = dict(zip(reversed(parts), reversed(matrices), strict=True))
    return [name for name in matrices if name not in first.values()]


def masks(
    noise: Sequence[Float[Tensor, "... _"]], rates: Float[Tensor, "hidden"]
) -> list[Float[Tensor, "... _"]]:
    """Return z/(1 − p) of each hidden layer; z = 0 where the normal is below the p-quantile."""
    bounds = torch.special.ndtri(rates.double()).to(rates)
    return [
        (block > bound).to(block.dtype) / (1 - rate)
        for block, bound, rate in zip(noise, bounds, rates, strict=True)
    ]
