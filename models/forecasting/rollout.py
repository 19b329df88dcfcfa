"""Sample paths. Each path continues the same past step by step, and reads the values it has drawn.

Each weight draw w makes K paths. A path keeps the mean and the variance that the network predicted
for each step before the step's value was drawn. Their averages over paths estimate E(y_h | w) and
Var(y_h | w) with less noise than the values do, and exactly for the first step.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from models.forecasting.histories import History
from models.forecasting.windows import Frame
from models.inference.noise import standard_normal
from models.likelihoods import GaussianLikelihood
from models.prediction.pauses import Pause, go_on
from models.prediction.whole_draws import FittedDraws, evaluate
from models.tensors import TensorRecord

PerStep = Float64[Tensor, "samples paths rows horizon"]


@dataclass(frozen=True)
class Paths(TensorRecord):
    """The drawn value of each step, and the mean and variance of u given the path before it.

    `changes` are the mean relative changes that the network predicts. Only its draws have them, and
    these are first.
    """

    values: PerStep
    means: PerStep
    variances: PerStep
    changes: Float64[Tensor, "networks paths rows horizon"]

    def scaled(self, factors: Float64[Tensor, "horizon"]) -> "Paths":
        """Paths whose deviations from the mean of all paths are multiplied by √factor at each step.

        The mean and shape of each step stay, and so do `changes`.
        """
        c = factors.to(self.means)
        centre, root = self.means.mean((0, 1)), c.sqrt()
        values, means = (centre + root * (part - centre) for part in (self.values, self.means))
        return Paths(values, means, c * self.variances, self.changes)

    def each(self, change: Callable[[Tensor], Tensor]) -> "Paths":
        """The same change of all four tensors."""
        return Paths(*map(change, vars(self).values()))

    def of_samples(self, chosen: Int[Tensor, "some"]) -> "Paths":
        """The paths of some weight draws."""
        chosen = chosen.to(self.values.device)
        of_networks = chosen[chosen < len(self.changes)]
        return Paths(
            self.values[chosen],
            self.means[chosen],
            self.variances[chosen],
            self.changes[of_networks],
        )

    @classmethod
    def concatenate(cls, parts: list["Paths"], dim: int) -> "Paths":
        """Join paths along the samples (`dim` 0) or the rows (`dim` 2)."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*(torch.cat(column, dim) for column in columns))


@dataclass(frozen=True)
class Rollout:
    """Applies a one-step model step after step."""

    frame: Frame
    likelihood: GaussianLikelihood
    fitted: FittedDraws
    seed: int
    paths: int  # per weight draw
    pause: Pause = go_on  # before each step of each chunk of draws

    @torch.inference_mode()
    def run(self, history: History, samples: int, memory_bytes: int) -> Paths:
        """Paths of `samples` weight draws, in their order, as many at once as memory allows.

        If the paths of a single draw do not fit for all rows, the rows are cut into parts. This
        does not change the result, because rows share the noise.
        """
        per_row = self.paths * history.bytes_per_path
        most = max(1, memory_bytes // 2 // per_row)
        parts = []
        for part in history.split(most):
            rows = len(part.past)
            by_network = self.fitted.draws_at_once(rows * self.paths, memory_bytes)
            at_once = max(1, min(by_network, memory_bytes // 2 // (rows * per_row)))
            chunks = []
            for start in range(0, samples, at_once):
                steps = self._steps(part, start, min(start + at_once, samples))
                each = zip(*steps, strict=True)
                chunks.append(Paths(*(torch.stack(column, -1) for column in each)))
            parts.append(Paths.concatenate(chunks, dim=0))
        return Paths.concatenate(parts, dim=2)

    def _steps(
        self, history: History, start: int, stop: int
    ) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Value, mean, variance and change of every path of these draws, step by step.

        The noise of a step is the same for all rows, and does not depend on the horizon: a longer
        forecast begins with the shorter one.
        """
        frame, functions = self.frame, self.fitted.source.functions(self.seed, start, stop)
        past = history.past.expand(stop - start, self.paths, -1, -1)
        for h in range(history.horizon):
            self.pause()
            reading = frame.read(past)
            x = self._inputs(reading.inputs, history, h)
            outputs = evaluate(self.fitted.network, functions, x.float()).double()
            change, noise = self.likelihood.moments(outputs, functions.point)
            change, noise = (part.reshape(reading.base.shape) for part in (change, noise))
            unit = reading.scale * frame.change.std
            mean = reading.base + reading.scale * frame.change.mean + unit * change
            variance = unit.square() * noise
            normal = standard_normal(self.seed, f"step {h}", start, stop, self.paths)
            value = mean + variance.sqrt() * normal.unsqueeze(-1).to(mean)
            seen = frame.observation.seen(value)
            past = torch.cat([past[..., 1:], seen.unsqueeze(-1)], dim=-1)
            yield value, mean, variance, frame.change.mean + frame.change.std * change

    def _inputs(self, read: Tensor, history: History, h: int) -> Float[Tensor, "samples batch _"]:
        """The network's rows: window and dynamic inputs step by step, then static inputs."""
        lead = read.shape[:-2]
        known = history.dynamic[:, h : h + self.frame.context]
        sequence = torch.cat([read, known.expand(*lead, -1, -1).to(read)], dim=-1).flatten(-2)
        row = torch.cat([sequence, history.static.expand(*lead, -1).to(read)], dim=-1)
        return row.flatten(1, 2)


PATHS, ALL_PATHS = 10, 1_000  # per weight draw, and in all at least if few draws are kept
_MIXED = 100  # draws of both together, if the network has few


@dataclass(frozen=True)
class Split:
    """How many draws a forecast has of the network and of the classical members.

    Args:
        network: weight draws.
        repeats: how often each weight draw counts, each time with paths of its own.
        classics: draws of the classical members' parameters.
        paths: per draw and repetition.
    """

    network: int
    repeats: int
    classics: int
    paths: int

    @classmethod
    def plan(cls, samples: int, kept: int | None, share: float) -> "Split":
        """
        Args:
            kept: how many weight draws a method has stored; None if it can draw any number.
            share: of the classical members.
        """
        if kept is None:
            classics = round(share * samples)
            return cls(samples - classics, 1, classics, PATHS)
        if share <= 0:
            return cls(samples, 1, 0, max(PATHS, math.ceil(ALL_PATHS / kept)))
        together = max(_MIXED, samples)
        repeats = round((1 - share) * together / samples)
        if not repeats:
            return cls(0, 1, together, max(PATHS, ALL_PATHS // together))
        network = samples * repeats
        classics = max(1, round(network * share / (1 - share)))
        return cls(samples, repeats, classics, max(PATHS, ALL_PATHS // (network + classics)))

    @property
    def all_paths(self) -> int:
        """Paths of all draws together."""
        return self.paths * (self.network * self.repeats + self.classics)

    def repeated(self, paths: Paths) -> Paths:
        """The paths of the network with each draw as often as it counts."""
        shape = (self.repeats, self.paths)
        return paths.each(lambda part: part.unflatten(1, shape).flatten(0, 1))
