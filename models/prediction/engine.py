"""The prediction engine: encoded rows and a posterior in, predictive mixtures out, in chunks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from models import metrics
from models.config import Json
from models.inference.bbb import BBBState
from models.likelihoods import (
    Bernoulli,
    Categorical,
    ClassLikelihood,
    GaussianLikelihood,
)
from models.networks import MLP
from models.posteriors import MeanFieldNormal
from models.prediction.predictive import CategoricalMixture, GaussianMixture, Mixture
from models.prediction.sampling import (
    DEFAULT_MEMORY_BYTES,
    Chunks,
    Moments,
    sample_functions,
    sample_outputs,
)
from models.targets import NumberTarget, Target


@dataclass(frozen=True)
class Fitted:
    """What predicting needs of a state, made once: it costs more than a small request."""

    posterior: MeanFieldNormal
    moments: Moments
    point: dict[str, Tensor]

    @classmethod
    @torch.inference_mode()
    def of(cls, state: BBBState) -> "Fitted":
        return cls(state.posterior, state.posterior.distribution().moments(), state.point)


@dataclass(frozen=True)
class Engine:
    """A network with its likelihood and target. It holds no weights and remembers nothing."""

    network: MLP
    likelihood: GaussianLikelihood | ClassLikelihood
    target: Target
    memory_bytes: int = DEFAULT_MEMORY_BYTES

    def mixtures(
        self, fitted: Fitted, x: Float[Tensor, "rows inputs"], seed: int, samples: int
    ) -> Iterator[tuple[slice, Mixture]]:
        """The predictive mixture of each chunk of rows, in the target's units."""
        chunks = Chunks.plan(self.network, len(x), samples, self.memory_bytes)
        for start in range(0, len(x), chunks.rows):
            rows = slice(start, start + chunks.rows)
            with torch.inference_mode():
                outputs = sample_outputs(
                    self.network,
                    fitted.moments,
                    x[rows],
                    seed=seed,
                    num_samples=samples,
                    chunk=chunks.samples,
                )
                yield rows, self._mixture(fitted, outputs)

    @torch.inference_mode()
    def draws(
        self, fitted: Fitted, x: Float[Tensor, "rows inputs"], seed: int, samples: int
    ) -> np.ndarray:
        """Predicted means of whole weight draws: samples × rows (× classes)."""
        outputs = sample_functions(
            self.network,
            fitted.posterior,
            x,
            seed=seed,
            num_samples=samples,
            memory_bytes=self.memory_bytes,
        )
        mixture = self._mixture(fitted, outputs)
        values = mixture.probs if isinstance(mixture, CategoricalMixture) else mixture.means
        return values.cpu().numpy()

    def score(
        self,
        fitted: Fitted,
        x: Float[Tensor, "rows inputs"],
        targets: Shaped[Tensor, "rows"],
        seed: int,
        samples: int,
    ) -> Json:
        """Metrics of labelled rows, in the target's units."""
        parts = [
            self._row_scores(mixture, targets[rows])
            for rows, mixture in self.mixtures(fitted, x, seed, samples)
        ]
        scores = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        if isinstance(self.target, NumberTarget):
            return metrics.regression_metrics(scores)
        return metrics.classification_metrics(scores)

    def _row_scores(self, mixture: Mixture, targets: Tensor) -> dict[str, Tensor]:
        if isinstance(mixture, CategoricalMixture):
            return metrics.classification_scores(mixture, targets)
        target = self._number_target()
        return metrics.regression_scores(mixture, targets.double() * target.std + target.mean)

    def _mixture(self, fitted: Fitted, outputs: Tensor) -> Mixture:
        """Summaries are made in float64: differences of nearly equal samples matter there."""
        outputs = outputs.double()
        if isinstance(self.likelihood, Categorical | Bernoulli):
            return CategoricalMixture(self.likelihood.probabilities(outputs))
        means, variances = self.likelihood.moments(outputs, fitted.point)
        target = self._number_target()
        return GaussianMixture(means * target.std + target.mean, variances * target.std**2)

    def _number_target(self) -> NumberTarget:
        if not isinstance(self.target, NumberTarget):
            raise TypeError(f"a Gaussian likelihood cannot predict {type(self.target).__name__}")
        return self.target
