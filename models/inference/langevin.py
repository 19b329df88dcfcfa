"""Stochastic-gradient Langevin dynamics, at a falling step size or in cycles.

    w ← w + (ε/2) ∇ log P̂(w | D) + N(0, ε),    ε = 2h/N

The gradient is that of the sum over all rows, estimated by N/|B| times a mini-batch's; the noise
has the *variance* ε. h is the rate of gradient descent per row, whatever the data's size.
Sources: Welling and Teh 2011; for the cycles Zhang et al. 2019 (arXiv 1902.03932).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from models.config import CyclicalSGLDConfig, SGLDConfig
from models.features.rows import Rows
from models.inference.chains import ChainState, LogPosterior, Terms, thinned


class Langevin(ABC):
    """Moves by mini-batch gradients and noise; step sizes and temperatures make the difference."""

    uses_all_rows: ClassVar[bool] = False

    @abstractmethod
    def step_size(self, step: int) -> float:
        """h of a step, counted from 0."""

    @abstractmethod
    def temperature(self, step: int) -> float:
        """How much of the noise's variance there is."""

    def move(
        self,
        posterior: LogPosterior,
        state: ChainState,
        batch: Rows,
        step: int,
        generator: torch.Generator,
    ) -> Terms:
        """Moves all chains at once; the terms of log P̂ where they were before."""
        return langevin_step(
            posterior, state, batch, self.step_size(step), self.temperature(step), generator
        )


@dataclass(frozen=True)
class SGLD(Langevin):
    """One step size for all values and chains."""

    config: SGLDConfig

    @property
    def kept_steps(self) -> tuple[int, ...]:
        return thinned(self.config)

    def step_size(self, step: int) -> float:
        return self.config.step_size * (1 + step / self.config.burn_in) ** -self.config.decay

    def temperature(self, step: int) -> float:
        return 1.0


@dataclass(frozen=True)
class CyclicalSGLD(Langevin):
    """Cycles of a falling cosine: the first half explores, the second half samples."""

    config: CyclicalSGLDConfig

    @property
    def kept_steps(self) -> tuple[int, ...]:
        """Evenly spread over the second half of each cycle, its end among them."""
        length, draws = self.config.cycle_steps, self.config.draws
        within = [length - (length // 2) * i // draws for i in reversed(range(draws))]
        return tuple(c * length + step for c in range(self.config.cycles) for step in within)

    def step_size(self, step: int) -> float:
        done = step % self.config.cycle_steps / self.config.cycle_steps
        return self.config.step_size * 0.5 * (1 + math.cos(math.pi * done))

    def temperature(self, step: int) -> float:
        return float(step % self.config.cycle_steps >= self.config.cycle_steps / 2)


def langevin_step(  # noqa: PLR0917 - the equation has as many symbols
    posterior: LogPosterior,
    state: ChainState,
    batch: Rows,
    step_size: float,
    temperature: float,
    generator: torch.Generator,
) -> Terms:
    """w + (h/N) ∇ log P̂ + √(2hT/N) ξ, in place."""
    values = state.values.detach().requires_grad_()  # a leaf on the same memory
    terms = posterior(values, batch)
    (gradient,) = torch.autograd.grad(terms.log_density.sum(), values)
    with torch.no_grad():
        noise = torch.empty_like(values).normal_(generator=generator)
        rows = posterior.num_data
        values.add_(gradient, alpha=step_size / rows)
        values.add_(noise, alpha=math.sqrt(2 * step_size * temperature / rows))
    return terms.detach()
