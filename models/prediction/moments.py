"""Moments of activations and outputs without sampling.

Source of the propagation: Wu et al. 2019, Deterministic Variational Inference (arXiv 1810.03958).
"""

import math
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.special import ndtr

from models.networks import ACTIVATIONS
from models.prediction.local import First, Gaussian, LocalNetwork

_TINY = 1e-20  # below the variance of any float32 product; avoids 0/0 for a unit without variance
_NODES = 32  # of the quadrature, which is exact for polynomials up to degree 63

Units = Float[Tensor, "*samples rows units"]


def activation_moments(activation: str, mean: Units, variance: Units) -> Gaussian:
    """Mean and variance of f(a), a ~ N(mean, variance)."""
    if activation == "relu":
        return relu_moments(mean, variance)
    return _quadrature(activation, mean, variance)


def relu_moments(mean: Units, variance: Units) -> Gaussian:
    """Mean and variance of max(a, 0), a ~ N(mean, variance).

    With t = μ/σ and r = σφ(t) − |μ|Φ(−|t|), the mean is max(μ, 0) + r. The mean of max(−a, 0) is
    max(−μ, 0) + r, and the variance is σ²Φ(t) minus the product of both means. This avoids
    differences of large numbers.
    """
    scale = variance.clamp_min(_TINY).sqrt_()
    t = mean / scale
    tail = torch.exp(-0.5 * t.square()).mul_(scale / math.sqrt(2 * math.pi))
    tail.addcmul_(mean.abs(), ndtr(-t.abs()), value=-1).clamp_min_(0)
    positive, negative = mean.clamp_min(0) + tail, (-mean).clamp_min(0) + tail
    spread = variance * ndtr(t) - positive * negative
    return positive, spread.clamp_min_(0)


def _quadrature(activation: str, mean: Units, variance: Units) -> Gaussian:
    """Gauss–Hermite: E f(a) = Σ w_k f(μ + σ x_k), two passes for the variance."""
    x, w = (part.view(-1, *[1] * mean.ndim) for part in _quadrature_on(mean.device, mean.dtype))
    values = ACTIVATIONS[activation](mean + variance.sqrt() * x)
    centre = (w * values).sum(0)
    return centre, (w * (values - centre).square()).sum(0)


@cache
def quadrature() -> Float[np.ndarray, "2 nodes"]:
    """Nodes x_k and weights w_k of E f(z) = Σ w_k f(x_k), z ~ N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return np.stack([nodes, weights / weights.sum()])


@cache
def _quadrature_on(device: torch.device, dtype: torch.dtype) -> Float[Tensor, "2 nodes"]:
    """The same on a device, copied there once."""
    with torch.inference_mode(mode=False):
        return torch.tensor(quadrature(), dtype=dtype, device=device)


def integrate_last(network: LocalNetwork, first: First, output: slice) -> Gaussian:
    """Mean and variance of some outputs of a network with one hidden layer.

    Exact, because the first layer's pre-activations are independent Gaussians, and independent of
    the linear path.
    """
    mean, variance = activation_moments(network.activation, *first.units)
    mean, variance = network.layers[-1].of_gaussian(mean, variance)
    if first.path is not None:
        mean, variance = mean + first.path[0], variance + first.path[1]
    return mean[..., output], variance[..., output]


def propagate(network: LocalNetwork, x: Float[Tensor, "rows inputs"]) -> Gaussian:
    """Mean and variance of the outputs.

    Exact up to the second layer's inputs. Later layers approximate: units count as independent,
    and their pre-activations as Gaussian.
    """
    mean, variance = network.layers[0](x)
    for layer in network.layers[1:]:
        mean, variance = layer.of_gaussian(*activation_moments(network.activation, mean, variance))
    if network.skip is None:
        return mean, variance
    path = network.skip(x)
    return mean + path[0], variance + path[1]
