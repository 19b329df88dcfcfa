"""What kernels are made of, and how numba compiles them.

Exponentials and tails of distributions, in vectors of float64 or float32; means over samples and
their standard errors (`models.prediction.monte_carlo_error`).
"""

import hashlib
import inspect
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch

# Sums may be reordered, so that they use vectors, and a product and a sum may be rounded once.
# Infinities and NaN keep their meaning.
_FAST_MATH = frozenset({"contract", "reassoc"})


def jit(function: Callable[..., Any]) -> Any:
    """The function, compiled at its first call.

    Machine code is kept beside the module, or in the user's cache, or nowhere if neither can be
    written to. Checks of types that wrap the function are left out: they are not Python that numba
    compiles.
    """
    plain = inspect.unwrap(function)
    # It names the function's files in the cache. Numba itself notices no change of another file.
    plain.__qualname__ = f"{plain.__name__}_{_revision()}"
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(_FAST_MATH)}
    try:
        return numba.njit(cache=True, **options)(plain)
    except RuntimeError:  # no folder for the cache
        return numba.njit(**options)(plain)


@cache
def _revision() -> str:
    """Of the modules with compiled functions, which call each other."""
    texts = [one.read_bytes() for one in sorted(Path(__file__).parent.glob("*.py"))]
    compiled = b"".join(text for text in texts if b"\n@jit\n" in text)
    return hashlib.sha256(compiled).hexdigest()[:12]


# Exponentials and tails

_LOG2E = 1 / math.log(2)
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # ln 2, Cody and Waite
_LOWEST, _HIGHEST = -708.0, 709.0  # whose exponentials are normal floats
_ROOT_HALF = math.sqrt(0.5)
DENSITY = 1 / math.sqrt(2 * math.pi)  # of a standard normal at 0

ZERO, HALF, ONE, TWO = map(np.float32, (0, 0.5, 1, 2))  # numba would compute with others in float64
_LOG2E32 = np.float32(_LOG2E)
_LN2_HIGH32, _LN2_LOW32 = np.float32(0.693145751953125), np.float32(1.42860676533018e-6)
_LOWEST32, _HIGHEST32 = np.float32(-87), np.float32(88)
_BIAS, _MANTISSA = np.int32(127), np.int32(23)
_G2, _G3, _G4, _G5, _G6, _G7 = (np.float32(1 / math.factorial(k)) for k in range(2, 8))

_CENTRE = 3.75
_DEGREE = 20  # relative error 4e-15


def _scaled_erfc() -> tuple[float, ...]:
    """Coefficients of (1 + 2x) exp(x²) erfc(x) in t = (x − k)/(x + k), k = 3.75.

    Source of the form: Shepherd and Laframboise 1981, Mathematics of Computation 36(153).
    """

    def value(t: np.ndarray) -> np.ndarray:
        x = _CENTRE * (1 + t) / (1 - t)
        return (1 + 2 * x) * torch.special.erfcx(torch.from_numpy(x)).numpy()

    series = np.polynomial.chebyshev.chebinterpolate(value, _DEGREE)
    return tuple(np.polynomial.chebyshev.cheb2poly(series).tolist())


(_E0, _E1, _E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13, _E14, _E15, _E16, _E17,
 _E18, _E19, _E20) = _scaled_erfc()  # fmt: skip
(_F0, _F1, _F2, _F3, _F4, _F5, _F6, _F7, _F8, _F9, _F10, _F11, _F12) = (
    1 / math.factorial(k) for k in range(13)
)


@jit
def exp(x):
    """exp(x) by 2ⁿ exp(r), |r| ≤ ln 2/2, to an ulp; of arguments outside it is that of the bound.

    The polynomials are written out: LLVM makes no vectors of a loop within a loop.
    """
    x = min(max(x, _LOWEST), _HIGHEST)
    n = math.floor(x * _LOG2E + 0.5)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = ((_F12 * r + _F11) * r + _F10) * r + _F9
    p = (((p * r + _F8) * r + _F7) * r + _F6) * r + _F5
    p = ((((p * r + _F4) * r + _F3) * r + _F2) * r + _F1) * r + _F0
    return p * np.int64((np.int64(n) + 1023) << 52).view(np.float64)


@jit
def upper_tail(z, e):
    """Φ(−|z|), given e = exp(−z²/2)."""
    x = abs(z) * _ROOT_HALF
    t = (x - _CENTRE) / (x + _CENTRE)
    p = (((_E20 * t + _E19) * t + _E18) * t + _E17) * t + _E16
    p = (((p * t + _E15) * t + _E14) * t + _E13) * t + _E12
    p = (((p * t + _E11) * t + _E10) * t + _E9) * t + _E8
    p = (((p * t + _E7) * t + _E6) * t + _E5) * t + _E4
    p = (((p * t + _E3) * t + _E2) * t + _E1) * t + _E0
    return 0.5 * e * p / (1 + 2 * x)


@jit
def _reduced32(x):
    """2ⁿ, r and (exp(r) − 1 − r) ÷ r² of x = n ln 2 + r."""
    n = np.floor(x * _LOG2E32 + HALF)
    r = (x - n * _LN2_HIGH32) - n * _LN2_LOW32
    p = ((((_G7 * r + _G6) * r + _G5) * r + _G4) * r + _G3) * r + _G2
    return np.int32((np.int32(n) + _BIAS) << _MANTISSA).view(np.float32), r, p


@jit
def exp32(x):
    """exp(x) of a float32; of arguments outside (−87, 88) it is that of the bound."""
    power, r, p = _reduced32(min(max(x, _LOWEST32), _HIGHEST32))
    return power * ((p * r + ONE) * r + ONE)


@jit
def expm132(x):
    """exp(x) − 1 of a float32, with all digits of small ones."""
    power, r, p = _reduced32(min(max(x, _LOWEST32), _HIGHEST32))
    return power * ((p * r + ONE) * r) + (power - ONE)


# Means over samples

_LEAST_SHARE = 0.25  # as `models.prediction.monte_carlo_error`


@jit
def mean_and_variance(values):
    """Mean and variance (divided by the number)."""
    total = 0.0
    for s in range(len(values)):
        total += values[s]
    mean, squares = total / len(values), 0.0
    for s in range(len(values)):
        squares += (values[s] - mean) ** 2
    return mean, squares / len(values)


@jit
def _squared_error(values, starts):
    """The squared standard error of the mean: Σ_m n_m s_m² ÷ S² (`standard_error`)."""
    found = 0.0
    for m in range(len(starts) - 1):
        count = starts[m + 1] - starts[m]
        variance = mean_and_variance(values[starts[m] : starts[m + 1]])[1]
        found += count * count / (count - 1) * variance
    return found / len(values) ** 2


@jit
def error_of_mean(values, starts, firsts, owners, size, shares, means):
    """The standard error of a mean of independent samples, or with `size` > 1 of even ones.

    As `models.prediction.monte_carlo_error.even_error`.

    Args:
        starts: the first sample of each member, and the number of samples.
        firsts, owners: the first sample of each block, and the first block of each member.
        shares: κ of a block, and of all points.
        means: to work in, one per block.
    """
    total = _squared_error(values, starts)
    if size == 1:
        return math.sqrt(total)
    for b in range(len(firsts)):
        means[b] = mean_and_variance(values[firsts[b] : firsts[b] + size])[0]
    between = _squared_error(means, owners)
    error = max((between - shares[0] * total) / (1 - shares[0]), _LEAST_SHARE * between)
    return math.sqrt(error + shares[1] * (total - error))
