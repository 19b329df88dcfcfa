"""Markov chains over weight vectors: several in parallel, in one batched product."""

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import MetropolisConfig
from models.features.rows import Rows
from models.inference.point import DrawsState
from models.inference.posterior import LogPosterior, PerChain, Terms, Values, gradient
from models.inference.preconditioner import Root, spread

JITTER = 2.0  # posterior standard deviations: wider than the posterior, as R-hat needs it


@dataclass(frozen=True)
class ChainState:
    """The current positions of the chains, and the draws that were kept; updated in place.

    Only Metropolis uses `density`, `log_scale` and `accepted`, only Langevin dynamics the last
    five.

    Args:
        root: R of the preconditioner.
        rate: ε of the first step; 0 until it is measured.
        anchor, slope: where control variates are centred, and ∇ log P of all rows there.
        heat, counted: Σ over steps of −ε (w − anchor)·∇ log P, and Σ ε, in the first step's ε.
    """

    values: Values
    kept: Float[Tensor, "draws chains values"]
    density: PerChain
    log_scale: PerChain
    accepted: PerChain
    root: Root
    rate: PerChain
    anchor: Values
    slope: Values
    heat: PerChain
    counted: PerChain

    @classmethod
    def begin(cls, fitted: DrawsState, draws: int, root: Root | None = None) -> "ChainState":
        """Start one chain from each member of an ensemble."""
        values = flat_values(fitted)
        kept = values.new_zeros(draws, *values.shape)
        zeros = (values.new_zeros(len(values)) for _ in range(6))
        density, log_scale, accepted, rate, heat, counted = zeros
        root = torch.ones_like(values) if root is None else root
        places = values.clone(), torch.zeros_like(values)
        return cls(values, kept, density, log_scale, accepted, root, rate, *places, heat, counted)

    def disperse(self, generator: torch.Generator) -> None:
        """Displace all chains by noise of `JITTER` times the preconditioner's scale."""
        noise = torch.empty_like(self.values).normal_(generator=generator)
        self.values.add_(spread(self.root, noise), alpha=JITTER)

    @property
    def temperature(self) -> float:
        """⟨−(w − c)·∇ log P⟩ ÷ values, the mean of all chains; 1 if they sample the posterior.

        By integration by parts it is 1 for any density and any constant c. In a Gaussian it is the
        mean over all directions of the chains' variance ÷ the posterior's. NaN if nothing was
        counted.
        Source: Leimkuhler and Matthews 2015, §6.1.3, the configurational temperature.
        """
        per_chain = self.heat / self.counted
        return float(per_chain.mean()) / self.values.shape[1]

    def pack(self) -> dict[str, Tensor]:
        """The tensors by name, on the CPU."""
        return {name: value.detach().cpu() for name, value in vars(self).items()}

    def restored(self, tensors: dict[str, Tensor]) -> "ChainState":
        """A copy with packed tensors, on this state's device."""
        return replace(self, **{name: t.to(self.values.device) for name, t in tensors.items()})

    def draws(self, posterior: LogPosterior) -> DrawsState:
        """Return the kept draws in an order in which the first n are spread evenly, for any n.

        The chains take turns; each chain's draws come in bit-reversed order: first, middle,
        quarters.
        """
        order = sorted(range(len(self.kept)), key=lambda i: f"{i:032b}"[::-1])
        return posterior.split(self.kept[order].flatten(0, 1))


@runtime_checkable
class Kernel(Protocol):
    """A transition kernel."""

    uses_all_rows: ClassVar[bool]

    @property
    def kept_steps(self) -> tuple[int, ...]:
        """The steps, counted from 1, after which a draw is kept; the last one ends the run."""
        ...

    def centres(self, step: int) -> bool:
        """Whether control variates are centred anew before this step, counted from 0."""
        ...

    def adapts(self, step: int) -> bool:
        """Whether the step size is measured anew before this step."""
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


def flat_values(fitted: DrawsState) -> Values:
    """Each member's weights and point parameters in one vector, as a copy."""
    return torch.cat([tensor.detach().flatten(1) for tensor in fitted.parameters()], dim=1)


def thinned(config: MetropolisConfig) -> tuple[int, ...]:
    """The steps, counted from 1, that are kept after the burn-in."""
    return tuple(config.burn_in + config.thinning * (i + 1) for i in range(config.draws))


def controlled_gradient(
    posterior: LogPosterior, state: ChainState, batch: Rows
) -> tuple[Terms, Values]:
    """Return the terms of log P̂, and an unbiased estimate of its gradient.

        ∇ log P̂(w) = ∇ log P̂_B(w) − ∇ log P̂_B(a) + ∇ log P(a)

    with the gradient of all rows at the anchor a. Its noise vanishes at the anchor, where that of a
    mini-batch alone is √N too large for large N (Baker et al. 2019, arXiv 1706.05439, eq. 6).
    """
    if len(batch) >= posterior.num_data:
        return gradient(posterior, state.values, batch)
    both, slopes = gradient(posterior, torch.cat([state.values, state.anchor]), batch)
    here, there = slopes.chunk(2)
    half = len(here)
    terms = Terms(both.log_likelihood[:half], both.log_prior[:half])
    return terms, here - there + state.slope
