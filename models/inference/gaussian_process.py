"""A Gaussian process below the networks of a table: what is known of a smooth function of its rows.

Members of an ensemble agree in a hole between rows, because each of them interpolates (Foong et al.
2019, arXiv 1909.00719). A Gaussian process does not: its deviation s(x) grows with the distance
from the rows, to that of the prior far away. Networks learn what is left of the target after the
process's mean m(x), and each sample of a prediction moves the location by m(x) + s(x) ε.

The prior covariance is a² exp(−½ Σ_j (x_j − x'_j)²/l_j²). Lengths l, size a and noise σ maximise
the marginal likelihood of some rows times a prior. Then all rows count, by way of at most
`MOST_CENTRES` centres u (Snelson and Ghahramani 2006, "FITC"). With ψ(x) = L⁻¹ k(u, x), where
L Lᵀ = K(u, u), and r² = a² − |ψ|²,

    w_i = 1/(σ_i² + r_i²),    A = I + Σ w_i ψ_i ψ_iᵀ,    m = ψᵀ A⁻¹ Σ w_i z_i ψ_i,
    s² = r² + ψᵀ A⁻¹ ψ.

σ_i is σ, unless errors out of fold say that the noise differs between rows. Where rows are dense,
s² falls like 1/n.

Where a smooth mean does not describe the rows, the process may widen alone (`widening`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.features.rows import evenly_spread
from models.tensors import TensorRecord, named_tensors, restored

MOST_CENTRES = 256
MOST_INPUTS = 64  # lengths: more could not be told from 1,000 rows
OFFSETS = 2  # numbers of a row's `offsets`
# Rows whose marginal likelihood is maximised, for each input and in all: 256 rows of 8 inputs do
# not tell a rough function from noise. Of 1,000 rows it takes 3 s.
_ROWS_PER_INPUT, _FEWEST_ROWS, _MOST_ROWS = 125, 250, 1_000
_STARTS, _START = (0.0, -1.2), [0.0, -1.0]  # logarithms: of lengths ÷ √inputs; of size and noise
_SEARCH = {"maxiter": 25, "ftol": 1e-5}  # relative: 0.01 of 1,000 nats
_FARTHEST = 5.0  # deviations of a target: outliers are no sign of a rough function
_PREFIX = "process"  # of its tensors in a file
_GOLDEN, _SHIFTS = (math.sqrt(5) - 1) / 2, 2**20
# Of a process that only widens: share of the rows that stay as they are, and their largest s²/a²
_USUAL, _MOST_USUAL = 0.9, 0.99
_NEGLIGIBLE = 1e-6  # information on a direction, relative to the prior's
_LESS_LIKELY = 0.5  # in nats: a standard error from the most likely
_WIDTHS = tuple(0.5**i for i in range(6))  # of a bisection of such steps, in logarithms
_JITTER = 1e-5  # of a², so that equal centres do not matter
# Of noise that differs between rows: largest logarithm of a factor, inputs², and errors² relative
# to the usual; the ridge keeps coefficients small that fewer than some twenty rows determine.
_UNEVEN, _SQUARES, _LEAST_SQUARE, _RIDGE = 4.0, 9.0, 1e-3, 20.0
# Priors on the logarithms: lengths grow with the root of the number of inputs, as distances do (an
# idea of Hvarfner et al. 2024, arXiv 2402.02229, whose prior has the median √(2 · inputs) and the
# spread √3); the size is near the target's.
_LENGTH, _LENGTH_SPREAD, _SIZE_SPREAD = 1.0, 1.5, 1.0

Points = Float[Tensor, "rows inputs"]
Offsets = Float[Tensor, "rows 2"]
"""Mean and deviation of each row, in standard deviations of the target."""


@dataclass(frozen=True)
class GaussianProcess(TensorRecord):
    """The process given its rows, in float64.

    Args:
        lengths: of each input.
        size: a, the prior deviation.
        noise: σ.
        centres: u ÷ lengths.
        mean: of the centres' covariances, for m(x).
        known: of the same, for a² − s²(x).
    """

    lengths: Float[Tensor, "inputs"]
    size: Float[Tensor, ""]
    noise: Float[Tensor, ""]
    centres: Float[Tensor, "centres inputs"]
    mean: Float[Tensor, "centres"]
    known: Float[Tensor, "centres rank"]

    @classmethod
    def fit(
        cls,
        x: Points,
        targets: Float[Tensor, "rows"],
        weights: Float[Tensor, "rows"] | None,
        folds: Int[Tensor, "rows"],
    ) -> "tuple[GaussianProcess, Offsets]":
        """The process of all rows, and the offsets of each of them, given the other folds.

        Args:
            targets: standardised.
            folds: the number of each row's fold.
        """
        x, z = x.double(), targets.double().clamp(-_FARTHEST, _FARTHEST)
        alike = cls._given(x, z, weights, folds, torch.ones_like(z))
        factors = _uneven_noise(x, z - alike[1][:, 0], weights)
        return alike if factors is None else cls._given(x, z, weights, folds, factors)

    @classmethod
    def _given(
        cls,
        x: Points,
        z: Float[Tensor, "rows"],
        weights: Float[Tensor, "rows"] | None,
        folds: Int[Tensor, "rows"],
        factors: Float[Tensor, "rows"],
    ) -> "tuple[GaussianProcess, Offsets]":
        """`fit`, where the variance of a row's noise is σ² times its factor."""
        most = max(_FEWEST_ROWS, min(_ROWS_PER_INPUT * x.shape[1], _MOST_ROWS))
        some = evenly_spread(len(x), most)
        found = _cautious(x[some], z[some], factors[some])
        return cls._conditioned(found, x, z, weights, folds, factors)

    @classmethod
    def _conditioned(  # noqa: PLR0917 - what was found, and the rows as in `_given`
        cls,
        found: tuple[Tensor, Tensor, Tensor],
        x: Points,
        z: Float[Tensor, "rows"],
        weights: Float[Tensor, "rows"] | None,
        folds: Int[Tensor, "rows"],
        factors: Float[Tensor, "rows"],
    ) -> "tuple[GaussianProcess, Offsets]":
        """`_given`, where lengths, size and noise are known."""
        lengths, size, noise = found
        x = x / lengths
        centres = x[evenly_spread(len(x), MOST_CENTRES)]
        prior = _covariance(centres, centres, size)
        prior.diagonal().add_(_JITTER * size**2)
        root = torch.linalg.cholesky(prior)
        features = torch.linalg.solve_triangular(root, _covariance(centres, x, size), upper=False)
        left = (size**2 - features.square().sum(0)).clamp_min(0)
        precision = (1.0 if weights is None else weights.double()) / (noise**2 * factors + left)
        offsets = x.new_empty(len(x), OFFSETS)
        each = [folds == fold for fold in torch.unique(folds).tolist()]
        told = [_evidence(features[:, own], precision[own], z[own]) for own in each]
        total = [torch.stack(parts).sum(0) for parts in zip(*told, strict=True)]
        for out, parts in zip(each, told, strict=True):
            mean, known = _posterior(
                *(whole - part for whole, part in zip(total, parts, strict=True))
            )
            own = features[:, out]
            offsets[out, 0] = own.T @ mean
            variance = size**2 - (known.T @ own).square().sum(0)
            offsets[out, 1] = variance.clamp_min(_JITTER * size**2).sqrt()
        mean, known = _posterior(*total)
        mean, known = (
            torch.linalg.solve_triangular(root.T, part, upper=True)
            for part in (mean.unsqueeze(1), known)
        )
        return cls(lengths, size, noise, centres, mean[:, 0], known), offsets.float()

    def widening(
        self,
        x: Points,
        weights: Float[Tensor, "rows"] | None,
        folds: Int[Tensor, "rows"],
        shorter: float,
    ) -> "tuple[GaussianProcess, Offsets]":
        """A process of mean 0 that widens only rows which are unusually far from the others.

        Its variance is a² max(0, s² − u)/(a² − u), with lengths that are shorter. Given the other
        folds, the share `_USUAL` of the rows has a variance s² of at most u: these hardly change.

        Args:
            shorter: factor of the lengths.
        """
        zero = x.new_zeros(len(x), dtype=torch.float64)
        found = self.lengths * shorter, self.size, self.noise
        process, offsets = self._conditioned(found, x.double(), zero, weights, folds, zero + 1)
        return _without(process, offsets, offsets[:, 1].double().square().quantile(_USUAL))

    def beside(
        self, offsets: Offsets, x: Points, variances: Float[Tensor, "rows"]
    ) -> "tuple[GaussianProcess, Offsets]":
        """The process without what the networks above it state, too, and its offsets.

        Networks that learn what a process leaves would have learned the difference, had it been
        another of those that the rows allow. So both variances are of one uncertainty. Of each row
        the smaller one is in both; the mean u of these is taken off: s² becomes
        a² max(0, s² − u)/(a² − u), in holes as good as before.

        Args:
            offsets: of all rows, given the other folds.
            x: some of the rows.
            variances: of the networks' locations in these.
        """
        both = self(x)[:, 1].double().square().minimum(variances.double())
        return _without(self, offsets, both.mean())

    @property
    def only_widens(self) -> bool:
        """Whether the mean is 0 everywhere."""
        return not self.mean.any()

    def __call__(self, x: Points) -> Offsets:
        """Mean and deviation of rows that the process was not fitted to."""
        at_centres, weights, most = self.ready
        scaled = x.double() / self.lengths
        nearness = torch.addmm(at_centres, scaled, self.centres.T)
        covariances = torch.exp(nearness - 0.5 * scaled.square().sum(1, keepdim=True))
        mean, known = (covariances @ weights).tensor_split([1], 1)
        variance = (most - known.square().sum(1, keepdim=True)).clamp_min_(_JITTER * most)
        return torch.cat([mean, variance.sqrt_()], 1).float()

    @cached_property
    def ready(self) -> tuple[Tensor, Tensor, float]:
        """What a call needs: log a² − ½|u|² of the centres, weights of mean and variance, and a².

        Most of a small request are calls of torch.
        """
        at_centres = 2 * self.size.log() - 0.5 * self.centres.square().sum(1)
        weights = torch.cat([self.mean.unsqueeze(1), self.known], 1)
        return at_centres, weights, float(self.size) ** 2

    def pack(self) -> dict[str, Tensor]:
        """The tensors to store."""
        return dict(named_tensors(self, _PREFIX))

    @classmethod
    def unpack(cls, tensors: Mapping[str, Tensor], inputs: int) -> "GaussianProcess | None":
        """The inverse of `pack`; None if there is no process among the tensors.

        Raises:
            ValueError: if a tensor is missing, or the process has another number of inputs.
        """
        if not any(name.startswith(f"{_PREFIX}.") for name in tensors):
            return None
        found = restored(cls, _PREFIX, tensors)
        if len(found.lengths) != inputs:
            raise ValueError(f"{_PREFIX} is for {len(found.lengths)} inputs, not {inputs}")
        return found


def _covariance(
    x: Points, others: Float[Tensor, "others inputs"], size: Tensor
) -> Float[Tensor, "rows others"]:
    """Prior covariances of points that are divided by the lengths."""
    squares = x.square().sum(1, keepdim=True) + others.square().sum(1)
    return size**2 * torch.exp(-0.5 * (squares - 2 * x @ others.T).clamp_min(0))


def _evidence(
    features: Float[Tensor, "centres rows"],
    precision: Float[Tensor, "rows"],
    z: Float[Tensor, "rows"],
) -> tuple[Float[Tensor, "centres centres"], Float[Tensor, "centres"]]:
    """What rows tell: Σ w ψ ψᵀ and Σ w z ψ."""
    weighted = features * precision
    return weighted @ features.T, weighted @ z


def _posterior(
    told: Float[Tensor, "centres centres"], moved: Float[Tensor, "centres"]
) -> tuple[Float[Tensor, "centres"], Float[Tensor, "centres rank"]]:
    """The weights of ψ in m(x), and a root of I − A⁻¹, by which s² is below a², given `_evidence`.

    Directions that the rows hardly tell of are left out: of smooth functions most.
    """
    value, vector = torch.linalg.eigh(told)
    value, vector = value[value > _NEGLIGIBLE], vector[:, value > _NEGLIGIBLE]
    mean = vector @ ((vector.T @ moved) / (1 + value))
    return mean, vector * (value / (1 + value)).sqrt()


def _without(
    process: GaussianProcess, offsets: Offsets, usual: Float[Tensor, ""]
) -> tuple[GaussianProcess, Offsets]:
    """The process with the variance a² max(0, s² − u)/(a² − u), where u is usual; its offsets."""
    square = process.size**2
    stretch = square / (square - usual.clamp_max(_MOST_USUAL * square))
    beyond = square - (square - offsets[:, 1].double().square()) * stretch
    deviation = beyond.clamp_min(_JITTER * square).sqrt().float()
    known = process.known * stretch.sqrt()
    return replace(process, known=known), torch.stack([offsets[:, 0], deviation], 1)


def _uneven_noise(
    x: Points, errors: Float[Tensor, "rows"], weights: Float[Tensor, "rows"] | None
) -> Float[Tensor, "rows"] | None:
    """How many times the usual variance each row's noise has; None if all rows may have the same.

    The logarithm is a ridge regression of log(errors²) on x and x² (Harvey 1976, "Estimating
    regression models with multiplicative heteroscedasticity", Econometrica 44). It counts if the
    log likelihood of the errors is larger by more than two standard errors and its parameters.

    Args:
        errors: of predictions that do not know the row.
    """
    count = torch.ones_like(errors) if weights is None else weights.double()
    total, squares = count.sum(), errors.double().square()
    usual = (count * squares).sum() / total
    inputs = torch.cat([torch.ones_like(x[:, :1]), x, x.square().clamp_max(_SQUARES)], 1)
    weighted = inputs.T * count
    penalty = torch.full_like(inputs[0], _RIDGE)
    penalty[0] = 0.0
    seen = (squares + _LEAST_SQUARE * usual).log()
    found = torch.linalg.solve(weighted @ inputs + penalty.diag(), weighted @ seen)
    factors = (inputs @ found - found @ weighted.sum(1) / total).clamp(-_UNEVEN, _UNEVEN).exp()
    own = factors * (count * squares / factors).sum() / total
    gains = 0.5 * ((usual / own).log() + squares / usual - squares / own)
    gain = (count * gains).sum() / total
    error = ((count * (gains - gain).square()).sum() / total**2).sqrt()
    return factors if bool(gain > 2 * error + inputs.shape[1] / total) else None


def _cautious(
    x: Points, z: Float[Tensor, "rows"], factors: Float[Tensor, "rows"]
) -> tuple[Tensor, Tensor, Tensor]:
    """Lengths, size and noise that are likely, and of these such that say less of holes.

    First those that maximise the marginal likelihood times the prior, from long lengths or from
    short ones: of many inputs a function of short lengths looks like noise to long ones. Then
    lengths are shortened, and the size is enlarged, by a standard error each: to where the
    likelihood is e^−½ of the most. Few rows hardly tell a smooth function from one that does more
    between them.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - predictions do without

    inputs = x.shape[1]

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _log_posterior(torch.from_numpy(logs), x, z, factors)
        return -value, -gradient.numpy()

    starts = [[0.5 * math.log(inputs) + length] * inputs + _START for length in _STARTS]
    fits = [minimize(loss, one, jac=True, method="L-BFGS-B", options=_SEARCH) for one in starts]
    found = torch.from_numpy(min(fits, key=lambda fit: fit.fun).x)
    for step in (x.new_tensor([-1.0] * inputs + [0.0, 0.0]), x.new_tensor([0.0] * inputs + [1, 0])):
        (best, _), reach = _log_posterior(found, x, z, factors), 0.0
        for width in _WIDTHS:
            value, _ = _log_posterior(found + (reach + width) * step, x, z, factors)
            if best - value < _LESS_LIKELY:
                reach += width
        found = found + reach * step
    found = found.exp()
    return found[:inputs], found[-2], found[-1]


def _log_posterior(
    logs: Float[Tensor, "parameters"],
    x: Points,
    z: Float[Tensor, "rows"],
    factors: Float[Tensor, "rows"],
) -> tuple[float, Float[Tensor, "parameters"]]:
    """The logarithm of marginal likelihood times prior, of the logarithms of l, a and σ.

    Also its gradient: ½ tr((α αᵀ − C⁻¹) ∂C) with α = C⁻¹ z (Rasmussen and Williams 2006, eq. 5.9).
    """
    inputs = x.shape[1]
    size, noise, scaled = logs[-2].exp(), logs[-1].exp(), x / logs[:inputs].exp()
    prior = _covariance(scaled, scaled, size)
    root = torch.linalg.cholesky(prior + (noise**2 * factors + _JITTER * size**2).diag())
    inverse = torch.cholesky_inverse(root)
    solved = inverse @ z
    middle = _LENGTH + 0.5 * math.log(inputs)
    beyond = torch.cat([(logs[:inputs] - middle) / _LENGTH_SPREAD, logs[-2:-1] / _SIZE_SPREAD])
    value = -0.5 * z @ solved - root.diagonal().log().sum() - 0.5 * beyond.square().sum()
    told = torch.outer(solved, solved) - inverse
    trace, of_noise = told.trace(), noise**2 * (factors @ told.diagonal())
    told = told * prior
    of_lengths = told.sum(1) @ scaled.square() - (scaled * (told @ scaled)).sum(0)
    of_size = told.sum() + _JITTER * size**2 * trace - beyond[-1] / _SIZE_SPREAD
    of_lengths = of_lengths - beyond[:-1] / _LENGTH_SPREAD
    return float(value), torch.cat([of_lengths, torch.stack([of_size, of_noise])])


def spread_normals(seed: int, samples: int) -> Float[Tensor, "samples"]:
    """Standard normals whose successive ones are evenly spread, so that those of a member are, too.

    They are quantiles at multiples of the golden ratio (Kronecker's sequence); the seed shifts it.
    """
    return torch.tensor(_spread_normals(seed, samples), dtype=torch.float64)


@lru_cache(maxsize=64)
def _spread_normals(seed: int, samples: int) -> tuple[float, ...]:
    """Numbers, which an exported graph has as constants."""
    shift, quantile = seed % _SHIFTS / _SHIFTS, NormalDist().inv_cdf
    places = ((shift + _GOLDEN * i) % 1 for i in range(1, samples + 1))
    return tuple(quantile(min(max(place, 1e-9), 1 - 1e-9)) for place in places)
