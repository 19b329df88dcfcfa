"""The plain summaries of a request: means, variances, intervals and errors by compiled kernels."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int
from torch import Tensor

from models.evaluation.adaptive import allowed_scores
from models.evaluation.calibration import (
    Calibration,
    ClassCalibration,
    NumberCalibration,
    ScalesVariance,
    about,
)
from models.features.targets import NumberTarget, Target
from models.likelihoods import (
    Bernoulli,
    Categorical,
    HeteroscedasticGaussian,
    HomoscedasticGaussian,
)
from models.likelihoods.likelihood import Likelihood
from models.prediction.answers import questions
from models.prediction.compiled import summaries
from models.prediction.compiled.passes import Outputs
from models.prediction.compiled.shapes import Components, Shape
from models.prediction.fitted import Sampled
from models.prediction.number_mixture import chosen, interval_tails
from models.prediction.options import IntervalKind, ResolvedOptions
from models.prediction.outputs import bound_names
from models.prediction.prediction import (
    CALIBRATED,
    adapted_to,
    bounds,
    calibrated_tails,
    wants_errors,
)
from models.prediction.summary import Summary

Arrays = dict[str, np.ndarray]

_SCORES = (None, "epistemic_variance", "total_entropy")  # that the summaries have


@dataclass(frozen=True)
class Plain:
    """What a request asks of a mixture, without further questions.

    Args:
        units: mean and standard deviation of a number.
        levels: of credible intervals.
        shape: of a likelihood with a shape.
    """

    likelihood: Likelihood
    options: ResolvedOptions
    score: str | None
    calibration: Calibration | None
    units: tuple[float, float]
    levels: tuple[float, ...]
    shape: Shape | None = None

    @classmethod
    def of(
        cls,
        likelihood: Likelihood,
        target: Target,
        options: ResolvedOptions,
        score: str | None,
        calibration: Calibration | None,
        *,
        shape: Shape | None = None,
    ) -> "Plain | None":
        """The request; None if kernels do not answer all of it."""
        kinds = Bernoulli | Categorical | HeteroscedasticGaussian | HomoscedasticGaussian
        is_known = shape is not None or isinstance(likelihood, kinds)
        asks_more = wants_errors(options) or questions.are_asked(options)
        if not is_known or asks_more or score not in _SCORES:
            return None
        units = (target.mean, target.std) if isinstance(target, NumberTarget) else (0.0, 1.0)
        levels = options.intervals if "credible" in options.interval_kinds else ()
        return cls(likelihood, options, score, calibration, units, levels, shape)

    def summarise(
        self, kernels: ModuleType, sampled: Sampled, groups: Int[Tensor, "rows"] | None
    ) -> Summary | None:
        """As `summarise` of the mixture; None where the kernels leave it to torch."""
        outputs = Outputs.of(kernels, sampled)
        if isinstance(self.likelihood, Bernoulli | Categorical):
            found = self._classes(outputs)
        elif self.shape is not None:
            found = self._shaped(outputs, self.shape, groups)
        else:
            found = self._numbers(outputs, self._log_noise(sampled), groups)
        if found is None:
            return None
        error = found.pop("mc_error")  # a single sample has none
        errors = {} if self.options.samples == 1 else {"mean": error}
        closed = {"closed": True} if self.shape is not None and self.shape.ends[2] else {}
        return Summary(values=found, errors=errors, constants=closed)

    @property
    def _even(self) -> bool:
        return self.options.sampler == "sobol"

    def _classes(self, outputs: Outputs) -> Arrays | None:
        calibration = self.calibration
        temperature = 1.0
        if isinstance(calibration, ClassCalibration):
            temperature = calibration.temperature
        found = summaries.classes(
            outputs,
            temperature,
            binary=isinstance(self.likelihood, Bernoulli),
            even=self._even,
        )
        if found is not None and self.score is not None:
            found["ood_score"] = found["expected_entropy"] + found["mutual_information"]
        return found

    def _numbers(
        self,
        outputs: Outputs,
        log_noise: Float32[np.ndarray, "_"],
        groups: Int[Tensor, "rows"] | None,
    ) -> Arrays | None:
        levels = self.levels
        tails = [0.5 * (1 - level) for level in levels]
        found = summaries.numbers(
            outputs,
            log_noise,
            self.units,
            self._variance_scale,
            (0.5, *tails, *(1 - tail for tail in tails)),
            even=self._even,
            whole=self.options.sampler == "monte_carlo" or len(outputs.column) == 1,
        )
        if found is None:
            return None
        mean, aleatoric, epistemic, error, median, *_ = found
        summary = self._moments((mean, aleatoric, epistemic, error))
        summary |= {"median": median} | _ends("credible", found[5:])
        return summary | self._conformal(mean, aleatoric + epistemic, groups)

    def _moments(self, moments: Iterable[np.ndarray]) -> Arrays:
        names = ("mean", "aleatoric_variance", "epistemic_variance", "mc_error")
        summary = dict(zip(names, moments, strict=True))
        score = {} if self.score is None else {"ood_score": summary["epistemic_variance"]}
        return summary | score

    def _shaped(
        self, outputs: Outputs, shape: Shape, groups: Int[Tensor, "rows"] | None
    ) -> Arrays | None:
        components = Components.of(outputs, shape, self._variance_scale, even=self._even)
        if components is None:
            return None
        means, shortest = torch.from_numpy(components.moments[0]), shape.shortest
        credible = interval_tails(means.new_tensor(self.levels).unsqueeze(1), shortest=shortest)
        calibrated = calibrated_tails(
            self.options, self.calibration, means, groups, shortest=shortest
        )
        tails = {"credible": credible.expand(-1, len(means)), **dict(calibrated)}
        middle = torch.full((1, len(means)), 0.5, dtype=means.dtype)
        quantiles = components.quantiles(torch.cat([middle, *tails.values()]).numpy())
        summary, start = self._moments(components.moments) | {"median": quantiles[0]}, 1
        for kind, own in tails.items():
            ends = quantiles[start : start + len(own)]
            start += len(own)
            if shortest and len(own):
                found, _ = chosen(torch.from_numpy(ends), own, shortest=True)
                ends = found.flatten(0, 1).numpy()
            summary |= _ends(kind, ends)
        return summary

    @property
    def _variance_scale(self) -> float:
        calibration = self.calibration
        return calibration.variance_scale if isinstance(calibration, ScalesVariance) else 1.0

    def _log_noise(self, sampled: Sampled) -> Float32[np.ndarray, "_"]:
        """Of each sample, if it is a parameter and no output."""
        if not isinstance(self.likelihood, HomoscedasticGaussian):
            return np.zeros(0, np.float32)
        value = sampled.point["log_variance"].float().flatten()
        return value.expand(sampled.num_samples).contiguous().numpy()

    def _conformal(
        self,
        mean: Float64[np.ndarray, "rows"],
        variance: Float64[np.ndarray, "rows"],
        groups: Int[Tensor, "rows"] | None,
    ) -> Arrays:
        levels, calibration = self.options.intervals, self.calibration
        kinds = [kind for kind in CALIBRATED if kind in self.options.interval_kinds]
        if not (levels and kinds and isinstance(calibration, NumberCalibration)):
            return {}
        means, deviations = torch.from_numpy(mean), torch.from_numpy(np.sqrt(variance))
        conformal = about(means, deviations, calibration.bounds(means, levels, groups))
        found = {"conformal": conformal, "adaptive": conformal}
        if adapted := adapted_to(self.options):
            scores = allowed_scores(levels, adapted, calibration.score)
            found["adaptive"] = about(means, deviations, scores)
        return {
            name: values.numpy()
            for kind in kinds
            for name, values in bounds(kind, found[kind]).items()
        }


def _ends(kind: IntervalKind, ends: Float64[np.ndarray, "ends rows"]) -> Arrays:
    """The bounds of intervals, rows × levels, from all lower ends and then all upper ends."""
    if not len(ends):
        return {}
    half = len(ends) // 2  # slices are many times faster than `np.split`
    lower, upper = bound_names(kind)
    return {lower: ends[:half].T, upper: ends[half:].T}
