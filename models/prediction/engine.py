"""The prediction engine: encoded rows and a posterior in, predictive mixtures out, in chunks."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.config import Json
from models.evaluation import calibration as calibrating
from models.evaluation import metrics
from models.evaluation.abstention import selective_metrics
from models.evaluation.calibration import (
    Calibrating,
    Calibration,
    ClassCalibration,
    NumberCalibration,
)
from models.features.rows import Rows
from models.features.targets import NumberTarget, Target
from models.inference.bbb import BBBState
from models.likelihoods import (
    Bernoulli,
    Categorical,
    ClassLikelihood,
    GaussianLikelihood,
)
from models.networks import LocallyDrawn, Network
from models.prediction.fitted import Fitted
from models.prediction.local import CACHE_BYTES, DEFAULT_MEMORY_BYTES
from models.prediction.noise import Noise, NoiseCache, NoiseSource
from models.prediction.options import Sampler
from models.prediction.predictive import CategoricalMixture, GaussianMixture, Mixture
from models.prediction.samplers import DrawNoise, Sampled, output_nodes, sample, sample_moments
from models.prediction.weight_draws import FittedDraws

_BUFFERS = 4  # of the widest layer, in float32
_WORKING_COPIES = 6  # of the outputs, in float64, while they are summarised
_MIN_SAMPLES = 16  # that share the first layer's products
_FIT_VALUES = 2**24  # numbers in the mixtures that a scale is fitted to: 128 MiB


@dataclass(frozen=True)
class Engine:
    """A network with its likelihood and target. It holds no weights.

    All it remembers is the noise of the latest requests, which follows from their seeds.
    """

    network: Network
    likelihood: GaussianLikelihood | ClassLikelihood
    target: Target
    whole_draws: bool = False  # a sample is a function of all rows: nothing else can be sampled
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    noise_cache: NoiseCache = field(default_factory=NoiseCache)

    @cached_property
    def noise(self) -> NoiseSource:
        """Of a network whose units are drawn, layer by layer."""
        if not isinstance(self.network, LocallyDrawn):
            raise TypeError(f"units of a {type(self.network).__name__} cannot be drawn")
        return NoiseSource(tuple(self.network.noise_widths()))

    @cached_property
    def nodes(self) -> Float[Tensor, "nodes outputs"]:
        return output_nodes(self.likelihood.num_outputs)

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        """What this network can be sampled with, the best first."""
        if self.whole_draws:
            return ("monte_carlo",)
        always: tuple[Sampler, ...] = ("monte_carlo", "moments")
        return ("sobol", *always) if self.noise.has_sobol else always

    def mixtures(
        self,
        fitted: Fitted | FittedDraws,
        x: Float[Tensor, "rows inputs"],
        sampler: str,
        seed: int,
        samples: int,
    ) -> Iterator[tuple[slice, Mixture]]:
        """The predictive mixture of each chunk of rows, in the target's units."""
        if isinstance(fitted, FittedDraws):
            yield from self._mixtures_of_draws(fitted, x, seed, samples)
            return
        for rows, sampled in self._sampled(fitted, x, sampler, seed, samples):
            with torch.inference_mode():
                mixture = self._mixture(fitted, sampled, sampler)
            yield rows, mixture

    @torch.inference_mode()
    def outputs(
        self,
        fitted: Fitted | FittedDraws,
        x: Float[Tensor, "rows inputs"],
        seed: int,
        samples: int,
    ) -> tuple[Float[Tensor, "draws rows outputs"], dict[str, Tensor]]:
        """The network's outputs by plain Monte Carlo, and the point parameters they belong to."""
        if isinstance(fitted, FittedDraws):
            return fitted.outputs(x, seed, samples, self.memory_bytes)
        parts = self._sampled(fitted, x, "monte_carlo", seed, samples)
        return torch.cat([sampled.drawn() for _, sampled in parts], dim=1), fitted.point

    @torch.inference_mode()
    def draws(
        self,
        fitted: Fitted | FittedDraws,
        x: Float[Tensor, "rows inputs"],
        seed: int,
        samples: int,
        calibration: Calibration | None = None,
    ) -> np.ndarray:
        """Predicted means of whole weight draws: samples × rows (× classes).

        Calibrated, they scatter about their mean as the epistemic variance says.
        """
        if isinstance(fitted, Fitted):
            fitted = FittedDraws.of(self.network, BBBState(fitted.posterior, fitted.point))
        outputs, point = fitted.outputs(x, seed, samples, self.memory_bytes)
        mixture = self._whole_mixture(outputs.double(), point)
        if calibration is not None:
            mixture = calibration.apply(mixture)
        drawn = mixture.means if isinstance(mixture, GaussianMixture) else mixture.probs
        return drawn.cpu().numpy()

    def calibrate(
        self, fitted: Fitted | FittedDraws, rows: Rows, seed: int, samples: int
    ) -> Calibration:
        """What these rows, which no weight was fitted to, say of the predictions."""
        sampler, width = self.samplers[0], samples * self.likelihood.num_outputs
        few = rows[_spread(len(rows), max(1, _FIT_VALUES // width))]
        scale = calibrating.fit_scale(list(self._seen(fitted, few, sampler, seed, samples)))
        if not isinstance(self.target, NumberTarget):
            return ClassCalibration(scale, len(few))
        found = [
            calibrating.residuals(one.mixture.scaled(scale), one.targets)
            for one in self._seen(fitted, rows, sampler, seed, samples)
            if isinstance(one.mixture, GaussianMixture)
        ]
        ordered = calibrating.order_statistics(torch.cat(found))
        return NumberCalibration(scale, ordered, len(rows))

    def score(
        self,
        fitted: Fitted | FittedDraws,
        rows: Rows,
        seed: int,
        samples: int,
        calibration: Calibration | None = None,
    ) -> Json:
        """Metrics of labelled rows, in the target's units."""
        scores = self.row_scores(fitted, rows, self.samplers[0], seed, samples, calibration)
        return metrics.summarise(scores) | selective_metrics(scores)

    def row_scores(  # noqa: PLR0917 - in the order of `mixtures`
        self,
        fitted: Fitted | FittedDraws,
        rows: Rows,
        sampler: str,
        seed: int,
        samples: int,
        calibration: Calibration | None = None,
    ) -> metrics.PerRowScores:
        """What each labelled row scores: `models.evaluation.metrics`, in the target's units."""
        seen = self._seen(fitted, rows, sampler, seed, samples)
        parts = [metrics.row_scores(one, calibration) for one in seen]
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def _seen(
        self, fitted: Fitted | FittedDraws, rows: Rows, sampler: str, seed: int, samples: int
    ) -> Iterator[Calibrating]:
        """What is predicted of labelled rows."""
        targets = rows.targets
        if isinstance(self.target, NumberTarget):
            targets = targets.double() * self.target.std + self.target.mean
        for part, mixture in self.mixtures(fitted, rows.inputs, sampler, seed, samples):
            weights = None if rows.weights is None else rows.weights[part]
            yield Calibrating(mixture, targets[part], weights)

    def _sampled(
        self, fitted: Fitted, x: Tensor, sampler: str, seed: int, samples: int
    ) -> Iterator[tuple[slice, Sampled]]:
        x = fitted.inputs(x)
        chunks = Chunks.plan(fitted.local.widths, len(x), samples, self.memory_bytes)
        noise = self._noise(fitted, sampler, seed)
        integrate = isinstance(self.target, NumberTarget) and not _is_drawn_whole(sampler, samples)
        for start in range(0, len(x), chunks.rows):
            rows = slice(start, start + chunks.rows)
            with torch.inference_mode():
                if sampler == "moments":
                    sampled = sample_moments(fitted, x[rows], self.nodes.to(x))
                else:
                    sampled = sample(
                        fitted, x[rows], noise, samples, chunks.samples, integrate=integrate
                    )
            yield rows, sampled

    @torch.inference_mode()
    def _mixtures_of_draws(
        self, fitted: FittedDraws, x: Tensor, seed: int, samples: int
    ) -> Iterator[tuple[slice, Mixture]]:
        step = fitted.rows_at_once(samples, self.memory_bytes)
        for start in range(0, len(x), step):
            rows = slice(start, start + step)
            outputs, point = fitted.outputs(x[rows], seed, samples, self.memory_bytes)
            yield rows, self._whole_mixture(outputs.double(), point)

    def _whole_mixture(self, outputs: Tensor, point: dict[str, Tensor]) -> Mixture:
        """Of outputs in float64 whose weights were drawn, none of them integrated."""
        if isinstance(self.likelihood, Categorical | Bernoulli):
            return CategoricalMixture(self.likelihood.logits(outputs))
        target = self._number_target()
        means, noise = self.likelihood.moments(outputs, point)
        return GaussianMixture(means * target.std + target.mean, noise * target.std**2)

    def _noise(self, fitted: Fitted, sampler: str, seed: int) -> DrawNoise:
        device = fitted.posterior.loc.device

        def draw(*key: Any) -> Noise:
            return tuple(block.to(device) for block in self.noise.draw(*key))

        def cached(start: int, stop: int) -> Noise:
            return fitted.noise(self.noise_cache.get((sampler, seed, start, stop), draw))

        return cached

    def _mixture(self, fitted: Fitted, sampled: Sampled, sampler: str) -> Mixture:
        """Summaries are made in float64: differences of nearly equal samples matter there.

        Where more than one sample is evenly spread, the last layer of a Gaussian's mean is
        integrated; one sample alone is a draw of the network, without epistemic variance.
        """
        sampled = sampled.double()
        drawn_whole = _is_drawn_whole(sampler, len(sampled.noise))
        is_number = isinstance(self.target, NumberTarget)
        outputs = sampled.drawn(keep_mean=is_number and not drawn_whole)
        mixture = self._whole_mixture(outputs, fitted.point)
        if drawn_whole or isinstance(mixture, CategoricalMixture):
            return mixture
        target = self._number_target()
        spread = sampled.outputs[1][..., 0].expand_as(mixture.means) * target.std**2
        integrated = None
        if sampled.integrated is not None:
            mean, variance = (part[..., 0] for part in sampled.integrated)
            integrated = mean * target.std + target.mean, variance * target.std**2
        return replace(mixture, spread=spread, integrated=integrated)

    def _number_target(self) -> NumberTarget:
        if not isinstance(self.target, NumberTarget):
            raise TypeError(f"a Gaussian likelihood cannot predict {type(self.target).__name__}")
        return self.target


def _spread(num_rows: int, most: int) -> Tensor:
    """Places of at most so many rows, evenly spread."""
    return torch.linspace(0, num_rows - 1, min(num_rows, most)).long()


def _is_drawn_whole(sampler: str, samples: int) -> bool:
    """Whether nothing is integrated: one sample alone is a draw, however it was sampled."""
    return sampler == "monte_carlo" or samples == 1


@dataclass(frozen=True)
class Chunks:
    """How many rows and samples go through the network at once."""

    rows: int
    samples: int

    @classmethod
    def plan(
        cls, widths: tuple[int, ...], num_rows: int, num_samples: int, memory_bytes: int
    ) -> "Chunks":
        """At least one row and one sample, the buffers within the cache if there is more.

        A row keeps the outputs of all its samples until it is summarised, so rows are bounded by
        memory first.
        """
        kept = num_samples * widths[-1] * 8 * _WORKING_COPIES
        pairs = max(1, min(CACHE_BYTES, memory_bytes // 2) // (4 * _BUFFERS * max(widths)))
        rows = min(num_rows, (memory_bytes // 2) // kept, pairs // min(_MIN_SAMPLES, num_samples))
        rows = max(1, rows)
        return cls(rows, min(num_samples, max(1, pairs // rows)))
