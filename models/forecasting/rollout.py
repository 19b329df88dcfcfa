"""Sample paths: each path continues the same past, and reads the values that it has drawn, as they
would be observed.

Each weight draw w makes K paths. A path keeps the mean and the variance that the network predicted
for each step before the step's value was drawn. Their averages over paths estimate E(y_h | w) and
Var(y_h | w) with less noise than the values, and exactly for the first step.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from models.forecasting.histories import History
from models.forecasting.windows import Frame
from models.likelihoods import GaussianLikelihood
from models.prediction.noise import standard_normal
from models.prediction.pauses import Pause, go_on
from models.prediction.weight_draws import FittedDraws, Functions, evaluate

PerStep = Float64[Tensor, "samples paths rows horizon"]


@dataclass(frozen=True)
class Paths:
    """The drawn value of each step, and the mean and variance of u given the path before it.

    `changes` are the mean relative changes that the network's draws predict; these come first.
    """

    values: PerStep
    means: PerStep
    variances: PerStep
    changes: Float64[Tensor, "networks paths rows horizon"]

    def scaled(self, factors: Float64[Tensor, "horizon"]) -> "Paths":
        """Deviations of u from the mean of all paths, times √factor at each step.

        Mean and shape of each step stay, and paths stay whole. `changes` are as predicted.
        """
        c = factors.to(self.means)
        centre, root = self.means.mean((0, 1)), c.sqrt()
        values, means = (centre + root * (part - centre) for part in (self.values, self.means))
        return Paths(values, means, c * self.variances, self.changes)

    def to(self, device: str | torch.device) -> "Paths":
        return self.each(lambda part: part.to(device))

    def each(self, change: Callable[[Tensor], Tensor]) -> "Paths":
        """All four tensors, changed in the same way."""
        parts = (self.values, self.means, self.variances, self.changes)
        return Paths(*(change(part) for part in parts))

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
        names = ("values", "means", "variances", "changes")
        return cls(*(torch.cat([getattr(part, name) for part in parts], dim) for name in names))


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
        rows = max(1, memory_bytes // 2 // per_row)
        parts = [self._run(part, samples, memory_bytes) for part in history.split(rows)]
        return Paths.concatenate(parts, dim=2)

    def _run(self, history: History, samples: int, memory_bytes: int) -> Paths:
        """Each chunk of weight draws sees all these rows."""
        rows = len(history.past)
        per_draw = rows * self.paths * history.bytes_per_path
        by_network = self.fitted.draws_at_once(rows * self.paths, memory_bytes)
        at_once = max(1, min(by_network, memory_bytes // 2 // per_draw))
        starts = range(0, samples, at_once)
        spans = [(start, min(start + at_once, samples)) for start in starts]
        return Paths.concatenate([self._draws(history, *span) for span in spans], dim=0)

    def _draws(self, history: History, start: int, stop: int) -> Paths:
        functions = self.fitted.source.functions(self.seed, start, stop)
        steps = list(self._steps(history, functions, start, stop))
        return Paths(*(torch.stack(column, -1) for column in zip(*steps, strict=True)))

    def _steps(
        self, history: History, functions: Functions, start: int, stop: int
    ) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Value, mean, variance and change of every path, step by step."""
        frame, rows = self.frame, len(history.past)
        past = history.past.expand(stop - start, self.paths, rows, -1)
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
            normal = self._noise(h, start, stop, rows).to(mean)
            value = mean + variance.sqrt() * normal
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

    def _noise(self, h: int, start: int, stop: int, rows: int) -> Float[Tensor, "samples paths 1"]:
        """Standard normals of (seed, step, sample, path), the same for all rows.

        They do not depend on the horizon: a longer forecast begins with the shorter one.
        """
        return standard_normal(self.seed, f"step {h}", start, stop, self.paths).unsqueeze(-1)


PATHS, ALL_PATHS = 10, 1_000  # per weight draw; at least in all
_MIXED = 100  # draws of both together, if the network has few


@dataclass(frozen=True)
class Split:
    """The draws of one forecast.

    Args:
        network: weight draws.
        repeats: times that each counts, with paths of its own.
        classics: draws of the classical members' parameters.
        paths: per draw, counted as often as it is repeated.
    """

    network: int
    repeats: int
    classics: int
    paths: int

    @classmethod
    def plan(cls, samples: int, kept: int | None, share: float) -> "Split":
        """
        Args:
            kept: weight draws that a method has stored; None if there are as many as are asked for.
            share: of the classical members.
        """
        if kept is None:
            classics = round(share * samples)
            return cls(samples - classics, 1, classics, PATHS)
        if share <= 0:
            return cls(samples, 1, 0, paths_per_draw(kept))
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
        """The network's paths with each draw as often as it counts."""
        shape = (self.repeats, self.paths)
        return paths.each(lambda part: part.unflatten(1, shape).flatten(0, 1))


def paths_per_draw(num_draws: int | None) -> int:
    """Ten, or more if few weight draws were kept, so that there are at least 1,000 paths in all."""
    return PATHS if num_draws is None else max(PATHS, math.ceil(ALL_PATHS / num_draws))
