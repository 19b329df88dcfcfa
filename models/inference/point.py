"""Point estimates: maximum likelihood, maximum a posteriori, and ensembles of them.

    −log P(w | D) = −log P(D | w) − log P(w) + constant

is minimised per row, on the scale of the negative ELBO (`models.fitting.objectives`). Weight
decay is the prior N(0, σ²) divided by N, so that σ has the same meaning for any size of the data.
Source of ensembles: Lakshminarayanan et al. 2017 (arXiv 1612.01474), without adversarial rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from models.config import EnsembleConfig, MAPConfig, MLEConfig
from models.exceptions import CorruptArtifact
from models.features.rows import Rows
from models.fitting.distributed import Part
from models.fitting.objectives import Loss, negative_elbo
from models.inference.method import (
    Draw,
    Finished,
    Fit,
    Functions,
    Method,
    Stages,
    State,
    check_point,
    check_tensor,
    named_point,
    unpack_point,
    with_last,
)
from models.likelihoods import Likelihood
from models.networks import Network, Stack, point_shape
from models.posteriors.layout import StackedLayout, Weights
from models.posteriors.priors import DiagonalPrior, GaussianPrior
from models.randomness import generator as fresh_generator


@dataclass(frozen=True)
class KeptDraws:
    """Weight vectors that a method has stored, as contiguous tensors. They need no seed."""

    weights: Weights
    point: dict[str, Tensor]
    bytes_per_sample: int = 0

    def functions(self, seed: int, start: int, stop: int) -> Functions:
        weights = {name: tensor[start:stop] for name, tensor in self.weights.items()}
        return Functions(weights, {name: value[start:stop] for name, value in self.point.items()})


@dataclass(frozen=True)
class DrawsState(State):
    """Weight vectors: a point estimate, the members of an ensemble, or the draws of chains.

    A vector has the weights of all members of the network. Point parameters are [draws, 1], which
    broadcasts over rows, or [draws, members, 1]. The draws are ordered so that the first n
    represent all of them, for any n.
    """

    kind = "draws"

    weights: Float[Tensor, "draws weights"]
    point: dict[str, Tensor]
    members: int = 1

    @property
    def num_weights(self) -> int:
        return self.weights.shape[1]

    @property
    def num_draws(self) -> int | None:
        """One per vector and member."""
        return len(self.weights) * self.members

    def parameters(self) -> list[Tensor]:
        return [self.weights, *self.point.values()]

    def at_mean(self) -> "DrawsState | None":
        return self.detach() if len(self.weights) == 1 else None

    def source(self, network: Network) -> KeptDraws:
        tensors = network.layout.unflatten(self.weights.detach())
        return KeptDraws({k: v.contiguous() for k, v in tensors.items()}, self.point)

    @classmethod
    def joined(cls, states: Sequence["DrawsState"]) -> "DrawsState":
        """All states have the same number of draws."""
        weights = torch.cat([state.weights for state in states], dim=1)
        return cls(weights, joined_point(states), sum(state.members for state in states))

    def of_members(self, layout: StackedLayout, members: Sequence[int]) -> "DrawsState":
        point = point_of_members(self.point, members)
        return DrawsState(layout.pick(self.weights, members), point, len(members))

    def with_last_row(self, rows: int, width: int, seed: int) -> "DrawsState":
        """The mean of the others; of several draws each has the row of a random other key."""
        table = self.weights[:, : (rows - 1) * width].unflatten(1, (-1, width))
        last = table.mean(1)
        if len(table) > 1:
            order = torch.randperm(table.shape[1], generator=fresh_generator(seed, "unseen"))
            chosen = order[torch.arange(len(table)) % len(order)].to(table.device)
            last = table[torch.arange(len(table), device=table.device), chosen]
        return replace(self, weights=with_last(self.weights, rows, last))

    def named(self) -> dict[str, Tensor]:
        return {"weights": self.weights, **named_point(self.point)}

    def pack(self) -> dict[str, Tensor]:
        members = {} if self.members == 1 else {"members": torch.tensor(self.members)}
        return super().pack() | members

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "DrawsState":
        members = int(tensors["members"]) if "members" in tensors else 1
        return cls(tensors["weights"], unpack_point(tensors), members)

    def check(self, network: Network, likelihood: Likelihood) -> None:
        draws = self.weights.shape[0] if self.weights.ndim == 2 else 0
        if not draws:
            raise CorruptArtifact("weights has no draws")
        if self.members != network.layout.members:
            raise CorruptArtifact(
                f"weights has {self.members} members; the network has {network.layout.members}"
            )
        check_tensor("weights", self.weights, (draws, network.layout.num_weights))
        check_point(self.point, likelihood, (draws, *(point_shape(network) or (1,))))


@dataclass(frozen=True)
class PointEstimates(Method):
    """One or several weight vectors, fitted in parallel in one batched product.

    Their losses are added. So each has the same gradient as if fitted alone, and an element-wise
    optimiser takes the same steps.
    """

    stored: ClassVar[type[State]] = DrawsState

    @property
    def vectors(self) -> int:
        """Number of weight vectors, each with the weights of all members of the network."""
        return 1

    @cached_property
    def prior(self) -> GaussianPrior | DiagonalPrior | None:
        return GaussianPrior(self.config.prior_sigma)

    @property
    def members(self) -> int:
        return self.vectors * self.layout.members

    @property
    def num_parameters(self) -> int:
        return self.vectors * self.layout.num_weights

    def init(self, generator: Generator) -> DrawsState:
        """Initialise each vector with its own generator, independent of their number."""
        seed = generator.initial_seed()
        weights = [
            initial_weights(self.network, self.likelihood, fresh_generator(seed, "member", member))
            for member in range(self.vectors)
        ]
        point = self.initial_point((self.vectors, *(point_shape(self.network) or (1,))))
        return DrawsState(torch.stack(weights), point, self.layout.members)

    def loss(
        self, state: DrawsState, batch: Rows, kl_weight: float, noise: Generator, part: Part
    ) -> Loss:
        """Return −log P(D | w) and −log P(w) per row, added over the members."""
        weights = self.layout.unflatten(state.weights)
        outputs = self.products(self.network, weights, batch.inputs)
        nll = -self.likelihood.log_prob(outputs, batch.targets, state.point)
        penalty = negative_log_prior(self.prior, state.weights)
        return negative_elbo(batch.weigh(nll), penalty, self.num_data, kl_weight, part)

    def draw(self, state: DrawsState, streams: int, generator: Generator) -> Draw:
        """Return all members; the penalty is the sum of their −log P(w)."""
        penalty = negative_log_prior(self.prior, state.weights)
        return Draw(self.layout.unflatten(state.weights), penalty)


class MAP(PointEstimates):
    """The most probable weights."""

    settings: ClassVar[type] = MAPConfig
    reads_texts = True
    learns_keys = True

    @classmethod
    def has_fixed_members(cls, members: int) -> bool:
        return members > 1


class MLE(MAP):
    """The weights of the largest likelihood."""

    settings = MLEConfig

    @cached_property
    def prior(self) -> None:
        return None


class Ensemble(PointEstimates):
    """Several `map` fits, each from its own initial weights."""

    settings = EnsembleConfig
    reads_texts = True
    learns_keys = True
    counts_members = "members"

    @classmethod
    def has_fixed_members(cls, members: int) -> bool:
        return True

    @property
    def vectors(self) -> int:
        return int(self.config.members)

    def finish(self, fit: Fit, stages: Stages) -> Finished:
        return Finished(fit.state, {"members": self.members})


def joined_point(states: Sequence[Any]) -> dict[str, Tensor]:
    """The point parameters of the members of all states."""
    names = states[0].point
    return {name: torch.cat([state.point[name] for state in states], dim=-2) for name in names}


def point_of_members(point: dict[str, Tensor], members: Sequence[int]) -> dict[str, Tensor]:
    return {name: value[..., list(members), :] for name, value in point.items()}


def repeated(value: Tensor, samples: int) -> Float[Tensor, "samples *members 1"]:
    """A point parameter for each sample: [S, 1], or [S, members, 1] of [members, 1]."""
    return value.expand(samples, *(value.shape or (1,)))


def initial_weights(
    network: Network, likelihood: Likelihood, generator: Generator
) -> Float[Tensor, "weights"]:
    """The network's initial weights, with predicted noise that does not depend on the inputs.

    Each member has a generator of its own, independent of the number of members.
    """
    if isinstance(network, Stack):
        seed = generator.initial_seed()
        vectors = [
            initial_weights(member, likelihood, fresh_generator(seed, "member", number))
            for number, member in enumerate(network.networks)
        ]
        return torch.cat(vectors)
    weights = network.init(generator)
    matrix = next(iter(network.layers[-1].shapes()))
    for output in likelihood.noise_outputs:
        weights[matrix][..., output, :] = 0.0
    return network.layout.flatten(weights)


def negative_log_prior(
    prior: GaussianPrior | DiagonalPrior | None, weights: Float[Tensor, "*draws weights"]
) -> Float[Tensor, ""]:
    """Return −log P(w) in nats, added over all weight vectors; 0 without a prior."""
    return weights.new_zeros(()) if prior is None else -prior.log_prob(weights).sum()
