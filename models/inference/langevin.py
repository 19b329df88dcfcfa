"""Stochastic-gradient Langevin dynamics with a decreasing or a cyclical step size.

    w ← w + (ε/2) P ∇ log P̂(w | D) + N(0, ε P)

The noise has the *covariance* εP. By default P is the inverse curvature at the fit
(`models.inference.posterior`), and ε follows from two measurements on the way:

* the largest eigenvalue λ of PH, with H the Hessian of −log P: in a Gaussian, steps widen a
  direction's variance by 1/(1 − ελ/4), so that ε = `_REACH`/λ;
* the variance of the gradient's noise ÷ that of the injected noise, r = ε E|Rᵀ(ĝ − g)|²/(4n), by
  which mini-batches widen the mean variance: ε falls until r is `_NOISE`, to a twentieth at most.

A `step_size` h that is given stands for P = 1/N, ε = 2h: gradient descent on the loss per row with
learning rate h. Draws are kept evenly in Σε, so that each stands for as much of the dynamics.
Sources: Welling and Teh 2011; for the cycles Zhang et al. 2019 (arXiv 1902.03932); for the widths
Mandt et al. 2017 (arXiv 1704.04289), §6; evenly in Σε instead of weights ε: Teh et al. 2016, eq. 4.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Generator

from models.config import CyclicalSGLDConfig, Json, SGLDConfig
from models.features.rows import Rows
from models.inference.chains import Chains, ChainState, Kernel, controlled_gradient
from models.inference.posterior import LogPosterior, PerChain, Terms, gather, spread

_REACH = 0.3  # ελ: standard deviations are then 4 % too wide
_NOISE = 0.1  # 5 % too wide
_LEAST = 0.05  # of the step that λ allows


@dataclass(frozen=True)
class Langevin(Kernel):
    """Moves chains by mini-batch gradients and noise; subclasses set step size and temperature."""

    most: ClassVar[float] = 1.0  # the first ε, in what λ allows

    config: SGLDConfig | CyclicalSGLDConfig

    @abstractmethod
    def share(self, step: int) -> float:
        """This step's ε ÷ the first one's; steps count from 0."""

    def temperature(self, step: int) -> float:
        """Factor T on the variance of the noise: 1 samples, 0 optimises."""
        return 1.0

    def step_size(self, step: int) -> float | None:
        """h of this step, if it is given."""
        size = self.config.step_size
        return None if size is None else size * self.share(step)

    def move(
        self, posterior: LogPosterior, state: ChainState, batch: Rows, step: int, source: Generator
    ) -> Terms:
        """Return log P̂ at the previous positions."""
        terms, slope = controlled_gradient(posterior, state, batch)
        if self.samples(step):
            share = self.share(step)  # so that steps count as draws do
            state.heat.sub_(((state.values - state.anchor) * slope).sum(1), alpha=share)
            state.counted.add_(share)
        noise = torch.empty_like(state.values).normal_(generator=source)
        given, heat = self.step_size(step), self.temperature(step)
        if given is None:
            epsilon = (state.rate * self.share(step)).unsqueeze(1)
            push = 0.5 * epsilon * gather(state.root, slope) + (epsilon * heat).sqrt() * noise
            state.values.add_(spread(state.root, push))
        else:
            epsilon = slope.new_tensor(2 * given / posterior.num_data)
            state.values.add_(0.5 * epsilon * slope + (epsilon * heat).sqrt() * noise)
        return terms

    def adapt(self, state: ChainState, sharpness: PerChain, noise: PerChain) -> None:
        allowed = self.most * _REACH / sharpness
        heat = allowed * noise / (4 * state.values.shape[1])
        state.rate.copy_(allowed * (_NOISE / heat.clamp_min(1e-12)).clamp(_LEAST, 1.0))

    def describe(self, state: ChainState) -> Json:
        temperature = state.temperature
        return {"temperature": temperature} if math.isfinite(temperature) else {}


@dataclass(frozen=True)
class DecreasingSteps(Langevin):
    """A decreasing step size; control variates are centred anew within the burn-in."""

    config: SGLDConfig

    @property
    def kept_steps(self) -> tuple[int, ...]:
        """Evenly in Σ ε after the burn-in."""
        config = self.config
        begin, end = (self._time(t) for t in (config.burn_in, self._end))
        times = (begin + (end - begin) * (i + 1) / config.draws for i in range(config.draws))
        return _ascending([round(self._step_at(time)) for time in times], self._end)

    def share(self, step: int) -> float:
        return float((1 + step / self.config.burn_in) ** -self.config.decay)

    def samples(self, step: int) -> bool:
        return step >= self.config.burn_in

    def centres(self, step: int) -> bool:
        burn_in = self.config.burn_in
        return step in {0, burn_in // 4, burn_in // 2, burn_in}

    def adapts(self, step: int) -> bool:
        """On the way, because a fit may be far from the posterior; the last time at its end."""
        return self.config.step_size is None and self.centres(step)

    @property
    def _end(self) -> int:
        return self.config.burn_in + self.config.thinning * self.config.draws

    def _time(self, step: float) -> float:
        """∫ (1 + t/b)^−d dt from 0, over b."""
        left = 1 - self.config.decay
        grown = math.log1p(step / self.config.burn_in)
        return math.expm1(left * grown) / left if left else grown

    def _step_at(self, time: float) -> float:
        """The inverse of `_time`."""
        left = 1 - self.config.decay
        grown = math.log1p(left * time) / left if left else time
        return self.config.burn_in * math.expm1(grown)


@dataclass(frozen=True)
class CyclicalSteps(Langevin):
    """Cycles of a decreasing cosine: the first half explores, the second half samples."""

    most: ClassVar[float] = 1.5  # sampling begins at half of a cycle's first step

    config: CyclicalSGLDConfig

    @property
    def kept_steps(self) -> tuple[int, ...]:
        """Evenly in Σ ε over the second half of each cycle."""
        length, draws = self.config.cycle_steps, self.config.draws
        begin, end = self._time(0.5), self._time(1.0)
        times = [begin + (end - begin) * (i + 1) / draws for i in range(draws)]
        within = _ascending([round(length * self._share_at(time)) for time in times], length)
        return tuple(c * length + step for c in range(self.config.cycles) for step in within)

    def share(self, step: int) -> float:
        done = step % self.config.cycle_steps / self.config.cycle_steps
        return 0.5 * (1 + math.cos(math.pi * done))

    def temperature(self, step: int) -> float:
        return float(self._within(step) >= self.config.cycle_steps / 2)

    def samples(self, step: int) -> bool:
        """From the first draw of a cycle on."""
        return self._within(step) >= self._first

    def centres(self, step: int) -> bool:
        return self._within(step) in {0, self.config.cycle_steps // 2}

    def adapts(self, step: int) -> bool:
        """At the first step, and where a cycle's draws begin."""
        begins = step == 0 or self._within(step) == self._first
        return self.config.step_size is None and begins

    def describe(self, state: ChainState) -> Json:
        return super().describe(state) | {"cycles": self.config.cycles}

    @cached_property
    def _first(self) -> int:
        """The step within a cycle after which the first draw is kept."""
        return self.kept_steps[0] - 1

    def _within(self, step: int) -> int:
        return step % self.config.cycle_steps

    @staticmethod
    def _time(done: float) -> float:
        """∫ ½ (1 + cos πu) du from 0 to this share of a cycle."""
        return 0.5 * (done + math.sin(math.pi * done) / math.pi)

    def _share_at(self, time: float) -> float:
        """The inverse of `_time`; it is flat at 1, which rounding must not pass."""
        from scipy.optimize import bisect  # noqa: PLC0415 - predictions do without

        end = min(time, self._time(1.0))
        return float(bisect(lambda done: self._time(done) - end, 0.5, 1.0))


def _ascending(steps: list[int], end: int) -> tuple[int, ...]:
    """The steps, each moved until they are distinct; the last one is `end`."""
    for i in range(1, len(steps)):
        steps[i] = max(steps[i], steps[i - 1] + 1)
    steps[-1] = end
    for i in reversed(range(len(steps) - 1)):
        steps[i] = min(steps[i], steps[i + 1] - 1)
    return tuple(steps)


class SGLD(Chains):
    """Langevin dynamics around the fits."""

    settings = SGLDConfig
    kernel = DecreasingSteps


class CyclicalSGLD(Chains):
    """Langevin dynamics in cycles, each of which finds another mode."""

    settings = CyclicalSGLDConfig
    kernel = CyclicalSteps
