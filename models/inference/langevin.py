"""Stochastic-gradient Langevin dynamics with a decreasing or a cyclical step size.

    w ← w + (ε/2) ∇ log P̂(w | D) + N(0, ε),    ε = 2h/N

The gradient of the sum over all N rows is estimated by N/|B| times that of a mini-batch. The noise
has the *variance* ε. h is the learning rate of gradient descent on the loss per row.
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
    """Moves chains by mini-batch gradients and noise; subclasses set step size and temperature."""

    uses_all_rows: ClassVar[bool] = False

    @abstractmethod
    def step_size(self, step: int) -> float:
        """h of this step, counted from 0."""

    @abstractmethod
    def temperature(self, step: int) -> float:
        """Factor T on the variance of the noise: 1 samples, 0 optimises."""

    def move(
        self,
        posterior: LogPosterior,
        state: ChainState,
        batch: Rows,
        step: int,
        generator: torch.Generator,
    ) -> Terms:
        """Set w to w + (h/N) ∇ log P̂ + √(2hT/N) ξ with ξ ~ N(0, 1), in place.

        Returns the terms of log P̂ at the previous positions.
        """
        values = state.values.detach().requires_grad_()  # a leaf on the same memory
        terms = posterior(values, batch)
        (gradient,) = torch.autograd.grad(terms.log_density.sum(), values)
        with torch.no_grad():
            noise = torch.empty_like(values).normal_(generator=generator)
            h, rows = self.step_size(step), posterior.num_data
            values.add_(gradient, alpha=h / rows)
            values.add_(noise, alpha=math.sqrt(2 * h * self.temperature(step) / rows))
        return terms.detach()


@dataclass(frozen=True)
class SGLD(Langevin):
    """A decreasing step size, the same for all values and chains."""

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
    """Cycles of a decreasing cosine: the first half explores, the second half samples."""

    config: CyclicalSGLDConfig

    @property
    def kept_steps(self) -> tuple[int, ...]:
        """Evenly spread over the second half of each cycle, including its end."""
        length, draws = self.config.cycle_steps, self.config.draws
        within = [length - (length // 2) * i // draws for i in reversed(range(draws))]
        return tuple(c * length + step for c in range(self.config.cycles) for step in within)

    def step_size(self, step: int) -> float:
        done = step % self.config.cycle_steps / self.config.cycle_steps
        return self.config.step_size * 0.5 * (1 + math.cos(math.pi * done))

    def temperature(self, step: int) -> float:
        return float(step % self.config.cycle_steps >= self.config.cycle_steps / 2)
