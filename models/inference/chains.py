"""Markov chains over weight vectors: several in parallel, in one batched product."""

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import MetropolisConfig, SGLDConfig
from models.features.rows import Rows
from models.inference.point import DrawsState
from models.likelihoods import Likelihood
from models.networks import Network, point_shape
from models.posteriors.priors import GaussianPrior
from models.tensors import TensorRecord

Values = Float[Tensor, "chains values"]
PerChain = Float[Tensor, "chains"]


@dataclass(frozen=True)
class ChainState:
    """The current positions of the chains, and the draws that were kept; updated in place.

    A chain's values are its weights, followed by the likelihood's point parameters, which have a
    flat prior. Only Metropolis uses `density`, `log_scale` and `accepted`.
    """

    values: Values
    kept: Float[Tensor, "draws chains values"]
    density: PerChain
    log_scale: PerChain
    accepted: PerChain

    @classmethod
    def begin(cls, fitted: DrawsState, draws: int) -> "ChainState":
        """Start one chain from each member of an ensemble."""
        values = torch.cat([tensor.detach().flatten(1) for tensor in fitted.parameters()], dim=1)
        zeros = values.new_zeros(len(values))
        return cls(
            values, values.new_zeros(draws, *values.shape), zeros, zeros.clone(), zeros.clone()
        )

    def pack(self) -> dict[str, Tensor]:
        """The tensors by name, on the CPU."""
        return {name: value.detach().cpu() for name, value in vars(self).items()}

    def restored(self, tensors: dict[str, Tensor]) -> "ChainState":
        """A copy with packed tensors, on this state's device."""
        return replace(self, **{name: t.to(self.values.device) for name, t in tensors.items()})

    def draws(self, posterior: "LogPosterior") -> DrawsState:
        """Return the kept draws in an order in which the first n are spread evenly, for any n.

        The chains take turns; each chain's draws come in bit-reversed order: first, middle,
        quarters.
        """
        order = sorted(range(len(self.kept)), key=lambda i: f"{i:032b}"[::-1])
        return posterior.split(self.kept[order].flatten(0, 1))


@dataclass(frozen=True)
class Terms(TensorRecord):
    """log P(D | w), estimated on a mini-batch, and log P(w), in nats per chain."""

    log_likelihood: PerChain
    log_prior: PerChain

    @property
    def log_density(self) -> PerChain:
        """log P(w | D) up to a constant."""
        return self.log_likelihood + self.log_prior


@dataclass(frozen=True)
class LogPosterior:
    """The target density of the chains."""

    network: Network
    likelihood: Likelihood
    prior: GaussianPrior
    num_data: int

    def split(self, values: Values) -> DrawsState:
        """Split the chains' values into weights and point parameters."""
        names = list(self.likelihood.parameters)
        num_weights, shape = self.network.layout.num_weights, point_shape(self.network) or (1,)
        weights, *point = values.split([num_weights, *[shape[0]] * len(names)], dim=1)
        contiguous = [part.contiguous().view(-1, *shape) for part in point]
        named = dict(zip(names, contiguous, strict=True))
        return DrawsState(weights.contiguous(), named, self.network.layout.members)

    def __call__(self, values: Values, batch: Rows) -> Terms:
        """Return both terms; the mini-batch's log likelihood is scaled by N/|B|."""
        draws = self.split(values)
        outputs = self.network(self.network.layout.unflatten(draws.weights), batch.inputs)
        log_prob = self.likelihood.log_prob(outputs, batch.targets, draws.point)
        scale, sums = self.num_data / len(batch), batch.weigh(log_prob).flatten(1).sum(1)
        return Terms(scale * sums, self.prior.log_prob(draws.weights).sum(1))


@runtime_checkable
class Kernel(Protocol):
    """A transition kernel."""

    uses_all_rows: ClassVar[bool]

    @property
    def kept_steps(self) -> tuple[int, ...]:
        """The steps, counted from 1, after which a draw is kept; the last one ends the run."""
        ...

    def move(
        self,
        posterior: LogPosterior,
        state: ChainState,
        batch: Rows,
        step: int,
        generator: torch.Generator,
    ) -> Terms:
        """Move all chains by one step, in place."""
        ...


def thinned(config: SGLDConfig | MetropolisConfig) -> tuple[int, ...]:
    """The steps, counted from 1, that are kept after the burn-in."""
    return tuple(config.burn_in + config.thinning * (i + 1) for i in range(config.draws))
