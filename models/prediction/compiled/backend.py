"""The compiled loops as one backend: the outputs of small networks, and plain summaries of outputs.

Each method returns None where torch is to compute the answer: while the kernels are not ready, for
networks and likelihoods that they do not take, and for requests that ask more.
"""

from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from types import ModuleType

import numpy as np
import torch
from jaxtyping import Float, Float32, Float64, Int, Int64
from torch import Tensor

from models.device import to_host
from models.evaluation.calibration import Calibration, ClassCalibration, ScalesVariance
from models.features.targets import NumberTarget, Target
from models.inference.noise import RequestNoise
from models.likelihoods import (
    Bernoulli,
    Categorical,
    HeteroscedasticGaussian,
    HomoscedasticGaussian,
)
from models.likelihoods.likelihood import Likelihood
from models.likelihoods.number_mixture import Ends
from models.prediction.compiled.compiler import compiler
from models.prediction.compiled.packed import Packed, errors
from models.prediction.compiled.shaped_arrays import Components, Outputs, Shape
from models.prediction.declared_outputs import bound_names
from models.prediction.fitted import Fitted, Sampled
from models.prediction.local import quadrature
from models.prediction.options import IntervalKind, ResolvedOptions
from models.prediction.outputs import questions
from models.prediction.prediction import intervals_about, median_and_intervals, wants_errors
from models.prediction.summary import Summary

Arrays = dict[str, np.ndarray]

_SCORES = (None, "epistemic_variance", "total_entropy")  # that the summaries have
_NOTHING = (2, 0, 0)
_MOMENTS = ("mean", "aleatoric_variance", "epistemic_variance", "mc_error")


@dataclass(frozen=True)
class Backend:
    """Compiled loops for a likelihood and its target.

    Args:
        loaded: their module; None for that of this process, once it is ready.
    """

    likelihood: Likelihood
    target: Target
    loaded: ModuleType | None = None

    @property
    def kernels(self) -> ModuleType | None:
        return compiler().kernels if self.loaded is None else self.loaded

    @cached_property
    def shape(self) -> Shape | None:
        """The likelihood as the loops read it, if it has a shape that they compute."""
        return Shape.of(self.likelihood)

    def takes(self, fitted: Fitted) -> bool:
        """Whether the loops compute the whole network, without Python's lock."""
        return self.kernels is not None and fitted.packed is not None

    def outputs(
        self,
        fitted: Fitted,
        x: Float[Tensor, "rows inputs"],
        noise: RequestNoise,
        *,
        samples: int,
        nodes: Float[Tensor, "nodes outputs"] | None,
        integrate: bool,
    ) -> Sampled | None:
        """As `Fitted.sample`, or with nodes as `Fitted.propagate`."""
        kernels, rows = self.kernels, len(x)
        packed = None if kernels is None else fitted.packed
        if kernels is None or packed is None:
            return None
        if nodes is not None:
            moments = np.empty((2, packed.outputs, rows, fitted.members), np.float32)
            kernels.propagate(*_network(packed, x), moments)
            return fitted.of_nodes(torch.from_numpy(moments).permute(0, 3, 2, 1), nodes)
        shares = fitted.shares(samples)
        counts = [share.stop - share.start for share in shares]
        used = np.flatnonzero(counts)
        moments = np.empty((2, packed.outputs, rows, samples), np.float32)
        known = (2, len(used), rows) if integrate and packed.has_exact else _NOTHING
        exact = np.empty(known, np.float32)
        starts = np.array([0, *accumulate(counts[m] for m in used)])
        hidden, places, normals = packed.noise(shares, noise)
        network = _network(packed, x, used if len(used) < len(counts) else None)
        kernels.sample(*network, hidden, places, starts, moments, exact)
        return Sampled(
            torch.from_numpy(moments).permute(0, 3, 2, 1),
            torch.from_numpy(normals).T,
            tuple(counts[m] for m in used),
            integrated=torch.from_numpy(exact).unsqueeze(-1) if exact.size else None,
            point=fitted.points(samples),
        )

    def summary(
        self,
        sampled: Sampled,
        options: ResolvedOptions,
        score: str | None,
        calibration: Calibration | None,
        groups: Int[Tensor, "rows"] | None,
    ) -> Summary | None:
        """As `summarise` of the mixture of these outputs."""
        known = Bernoulli | Categorical | HeteroscedasticGaussian | HomoscedasticGaussian
        is_known = self.shape is not None or isinstance(self.likelihood, known)
        asks_more = wants_errors(options) or questions.are_asked(options)
        kernels, noise = self.kernels, sampled.noise
        if kernels is None or noise is None or not noise.is_cpu:
            return None
        if not is_known or asks_more or score not in _SCORES:
            return None
        found = _Plain(self, options, score, calibration, Outputs.of(kernels, sampled), groups)
        return found.summary(sampled.point)


@dataclass(frozen=True)
class _Plain:
    """A request that asks outputs for means, variances, errors and intervals, and no more."""

    backend: Backend
    options: ResolvedOptions
    score: str | None
    calibration: Calibration | None
    outputs: Outputs
    groups: Int[Tensor, "rows"] | None

    def summary(self, point: dict[str, Tensor]) -> Summary | None:
        """None if something is not finite, or the noise leaves its bounds."""
        shape = self.backend.shape
        if isinstance(self.backend.likelihood, Bernoulli | Categorical):
            found = self._classes()
        elif shape is not None:
            found = self._shaped(shape)
        else:
            found = self._numbers(point)
        if found is None:
            return None
        if self.score is not None:
            found["ood_score"] = (
                found["expected_entropy"] + found["mutual_information"]
                if "expected_entropy" in found
                else found["epistemic_variance"]
            )
        error = found.pop("mc_error")  # a single sample has none
        of_mean = {} if self.options.samples == 1 else {"mean": error}
        closed = {"closed": True} if shape is not None and shape.ends[2] else {}
        return Summary(values=found, errors=of_mean, constants=closed)

    @property
    def _even(self) -> bool:
        return self.options.sampler == "sobol"

    @property
    def _levels(self) -> tuple[float, ...]:
        """Of credible intervals."""
        return self.options.intervals if "credible" in self.options.interval_kinds else ()

    @property
    def _variance_scale(self) -> float:
        calibration = self.calibration
        return calibration.variance_scale if isinstance(calibration, ScalesVariance) else 1.0

    def _classes(self) -> Arrays | None:
        outputs, calibration = self.outputs, self.calibration
        temperature = calibration.temperature if isinstance(calibration, ClassCalibration) else 1.0
        binary = isinstance(self.backend.likelihood, Bernoulli)
        _, number, rows, _ = outputs.moments.shape
        found = np.empty((4, rows, 2 if binary else number))
        entropies = np.empty((2, rows))
        is_fine = outputs.kernels.classes(
            outputs.moments,
            outputs.noise,
            outputs.column,
            binary,
            temperature,
            errors(outputs.counts, even=self._even),
            found,
            entropies,
        )
        if not is_fine:
            return None
        of_entropies = dict(zip(("expected_entropy", "mutual_information"), entropies, strict=True))
        return dict(zip(_MOMENTS, found, strict=True)) | of_entropies

    def _numbers(self, point: dict[str, Tensor]) -> Arrays | None:
        outputs, target = self.outputs, self.backend.target
        assert isinstance(target, NumberTarget)
        samples, log_noise = len(outputs.column), np.zeros(0, np.float32)
        if isinstance(self.backend.likelihood, HomoscedasticGaussian):  # a parameter, no output
            value = point["log_variance"].float().flatten()
            log_noise = value.expand(samples).contiguous().numpy()
        tails = [0.5 * (1 - level) for level in self._levels]
        levels = (0.5, *tails, *(1 - tail for tail in tails))
        found = np.empty((4 + len(levels), outputs.moments.shape[2]))
        is_fine = outputs.kernels.numbers(
            outputs.moments,
            outputs.noise,
            outputs.column,
            log_noise,
            outputs.exact,
            (target.mean, target.std),
            self.options.sampler == "monte_carlo" or samples == 1,
            self._variance_scale,
            *_normals(levels),
            errors(outputs.counts, even=self._even),
            found,
        )
        if not is_fine:
            return None
        summary = dict(zip(_MOMENTS, found, strict=False)) | {"median": found[4]}
        summary |= _ends("credible", found[5:])
        means, variances = torch.from_numpy(found[0]), torch.from_numpy(found[1] + found[2])
        return summary | to_host(
            intervals_about(means, variances, self.options, self.calibration, self.groups)
        )

    def _shaped(self, shape: Shape) -> Arrays | None:
        components = Components.of(self.outputs, shape, self._variance_scale, even=self._even)
        if components is None:
            return None
        mean, aleatoric, epistemic, *_ = components.moments
        means, variances = torch.from_numpy(mean), torch.from_numpy(aleatoric + epistemic)
        target = self.backend.target
        assert isinstance(target, NumberTarget)

        def quantiles(levels: Ends) -> Ends:
            return torch.from_numpy(components.quantiles(levels.numpy()))

        found, _ = median_and_intervals(
            quantiles,
            means,
            variances,
            self.options,
            self.calibration,
            groups=self.groups,
            drops_ends=target.drops_ends,
        )
        return dict(zip(_MOMENTS, components.moments, strict=True)) | to_host(found)


def _ends(kind: IntervalKind, ends: Float64[np.ndarray, "ends rows"]) -> Arrays:
    """The bounds of intervals, rows × levels, from all lower ends and then all upper ends."""
    if not len(ends):
        return {}
    half = len(ends) // 2  # slices are many times faster than `np.split`
    lower, upper = bound_names(kind)
    return {lower: ends[:half].T, upper: ends[half:].T}


@lru_cache(maxsize=64)
def _normals(levels: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The levels, and the standard normal's quantiles."""
    wanted = torch.tensor(levels, dtype=torch.float64)
    return wanted.numpy(), torch.special.ndtri(wanted).numpy()


def _network(
    packed: Packed, x: Tensor, members: Int64[np.ndarray, "used"] | None = None
) -> tuple[object, ...]:
    """The arguments of the kernels that describe the networks, of some members or of all."""
    columns = packed.columns(x.shape[1])
    of_members = columns, packed.shapes, packed.depths
    if members is not None:
        of_members = tuple(one[members] for one in of_members)
    return (
        x.contiguous().numpy(),
        *of_members,
        packed.weights,
        packed.activation,
        _quadrature(),
    )


@cache
def _quadrature() -> Float32[np.ndarray, "2 nodes"]:
    return quadrature().astype(np.float32)
