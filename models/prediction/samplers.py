"""Outputs of a network under its posterior, by sampling or by moments alone."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.prediction.fitted import Fitted
from models.prediction.local import Gaussian, Scratch
from models.prediction.moments import integrate_last, propagate
from models.prediction.noise import Noise
from models.prediction.sobol import Sobol

MEAN = slice(0, 1)  # the output that is the mean of a Gaussian likelihood
_NODES = 128  # of the quadrature over the outputs, if nothing else is sampled

DrawNoise = Callable[[int, int], Noise]


@dataclass(frozen=True)
class Sampled:
    """Moments of the outputs given each sample's hidden layers, and normals to draw them with.

    `integrated` are the moments of the first output with nothing drawn; None if unknown.
    """

    outputs: Gaussian
    noise: Float[Tensor, "samples outputs"]
    integrated: Gaussian | None = None

    def drawn(self, *, keep_mean: bool = False) -> Float[Tensor, "samples rows outputs"]:
        """A draw of the outputs; with `keep_mean` the first output stays at its mean."""
        mean, variance = self.outputs
        drawn = torch.addcmul(mean, variance.sqrt(), self.noise.unsqueeze(1))
        if keep_mean:
            drawn[..., MEAN] = mean[..., MEAN]
        return drawn

    def double(self) -> "Sampled":
        """A copy in float64."""
        integrated = self.integrated and _double(self.integrated)
        return Sampled(_double(self.outputs), self.noise.double(), integrated)


def sample(
    fitted: Fitted,
    x: Float[Tensor, "rows inputs"],
    draw_noise: DrawNoise,
    num_samples: int,
    chunk: int,
    *,
    integrate: bool = False,
) -> Sampled:
    """Outputs by local reparameterisation, `chunk` samples at a time.

    With `integrate` the result also has the moments `integrated`, if they are known.
    """
    local, outputs = fitted.local, fitted.local.widths[-1]
    first = local.first(x)
    scratch = Scratch(min(chunk, num_samples) * len(x), local.max_width, x)
    exact = _exact(fitted, first) if integrate else None
    # Allocated once: small results between large temporaries would fragment the heap.
    gaussian = x.new_empty(2, num_samples, len(x), outputs)
    noise_of_outputs = x.new_empty(num_samples, outputs)
    for start in range(0, num_samples, chunk):
        samples = slice(start, min(start + chunk, num_samples))
        noise = draw_noise(samples.start, samples.stop)
        gaussian[0, samples], gaussian[1, samples] = local.outputs(first, noise, scratch)
        noise_of_outputs[samples] = noise[-1]
    return Sampled((gaussian[0], gaussian[1]), noise_of_outputs, exact)


def output_nodes(num_outputs: int) -> Float[Tensor, "nodes outputs"]:
    """Evenly spread standard normals, for a quadrature over the outputs."""
    return Sobol.build(num_outputs).normals(0, 0, _NODES)


def sample_moments(
    fitted: Fitted, x: Float[Tensor, "rows inputs"], nodes: Float[Tensor, "nodes outputs"]
) -> Sampled:
    """Moments of the outputs by propagation; the nodes replace random draws."""
    mean, variance = (part.unsqueeze(0) for part in propagate(fitted.local, x))
    return Sampled((mean, variance), nodes, (mean[..., MEAN], variance[..., MEAN]))


def _exact(fitted: Fitted, first: Gaussian) -> Gaussian | None:
    """Moments of the predicted mean without sampling, if they are exact and cheap.

    With one hidden layer, whose units are independent, they cost as much as one sample. In a deeper
    network the last hidden layer would be integrated for each sample, which costs more than the
    samples that it saves (docs/benchmarks.md).
    """
    match len(fitted.local.layers):
        case 1:
            return first[0][..., MEAN], first[1][..., MEAN]
        case 2:
            return integrate_last(fitted.local, first, MEAN)
    return None


def _double(gaussian: Gaussian) -> Gaussian:
    mean, variance = gaussian
    return mean.double(), variance.double()
