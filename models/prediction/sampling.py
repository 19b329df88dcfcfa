"""Outputs of a network under many samples of its posterior, without a loop over samples.

Two ways. `sample_outputs` draws pre-activations (local reparameterisation): exact for each row,
no weights are drawn, the first layer's products are shared by all samples. `sample_functions`
draws weights, each draw shared by all rows: for draws of whole functions.

The noise is a function of (seed, layer, sample) alone. All rows share it, so that a row's answer
does not depend on the rows around it, nor on how work is cut into chunks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.networks import MLP
from models.posteriors import MeanFieldNormal
from models.randomness import generator

Moments = tuple[Float[Tensor, "weights"], Float[Tensor, "weights"]]
"""Mean and variance of every weight, as `DiagonalNormal.moments` gives them."""

NOISE_BLOCK = 64  # samples per generator: small enough to bound memory, large enough to be cheap
DEFAULT_MEMORY_BYTES = 256 * 2**20
_BUFFERS = 6  # tensors of the widest layer that one forward pass holds at a time


@dataclass(frozen=True)
class Chunks:
    """How many rows and samples go through the network at once."""

    rows: int
    samples: int

    @classmethod
    def plan(cls, network: MLP, num_rows: int, num_samples: int, memory_bytes: int) -> "Chunks":
        """The largest chunks within a memory bound, at least one row and one noise block.

        A row keeps the outputs of all its samples until it is summarised (in float64, with a few
        working copies), so rows are bounded by these first, then samples by the widest layer.
        """
        widths = [layer.out_features for layer in network.layers]
        kept = num_samples * widths[-1] * 8 * _BUFFERS
        rows = max(1, min(num_rows, (memory_bytes // 2) // kept))
        per_sample = rows * max(widths) * 4 * _BUFFERS
        blocks = max(1, (memory_bytes // 2) // (per_sample * NOISE_BLOCK))
        return cls(rows, min(num_samples, blocks * NOISE_BLOCK))


def sample_outputs(
    network: MLP,
    moments: Moments,
    x: Float[Tensor, "rows inputs"],
    *,
    seed: int,
    num_samples: int,
    chunk: int | None = None,
) -> Float[Tensor, "samples rows outputs"]:
    """Outputs by local reparameterisation with one noise block for all rows."""
    loc, variance = (network.layout.unflatten(part) for part in moments)
    parts = [
        network.local(loc, variance, x, [n.unsqueeze(1).to(x.device) for n in noise])
        for noise in _noise_chunks(network, seed, num_samples, chunk or num_samples)
    ]
    return torch.cat(parts)


def _noise_chunks(
    network: MLP, seed: int, num_samples: int, chunk: int
) -> Iterator[list[Float[Tensor, "samples width"]]]:
    """For each chunk of samples, one noise tensor per layer."""
    for start in range(0, num_samples, chunk):
        stop = min(start + chunk, num_samples)
        yield [
            standard_normal(seed, layer, start, stop, width)
            for layer, width in enumerate(network.noise_widths())
        ]


def standard_normal(
    seed: int, layer: int | str, start: int, stop: int, width: int
) -> Float[Tensor, "samples width"]:
    """Rows start … stop of the endless noise matrix that belongs to (seed, layer)."""
    first, last = start // NOISE_BLOCK, -(-stop // NOISE_BLOCK)
    blocks = [
        torch.randn(NOISE_BLOCK, width, generator=generator(seed, "noise", layer, block))
        for block in range(first, last)
    ]
    offset = first * NOISE_BLOCK
    return torch.cat(blocks)[start - offset : stop - offset]


def sample_functions(
    network: MLP,
    posterior: MeanFieldNormal,
    x: Float[Tensor, "rows inputs"],
    *,
    seed: int,
    num_samples: int,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> Float[Tensor, "samples rows outputs"]:
    """Outputs of whole weight draws: sample s is one function, evaluated at every row."""
    width = posterior.loc.numel()
    widest = max(layer.out_features for layer in network.layers)
    per_sample = 4 * (2 * width + 2 * len(x) * widest)
    chunk = max(1, memory_bytes // per_sample)
    q, parts = posterior.distribution(), []
    for start in range(0, num_samples, chunk):
        draws = range(start, min(start + chunk, num_samples))
        noise = torch.stack([_weight_noise(seed, draw, width) for draw in draws]).to(x.device)
        parts.append(network(network.layout.unflatten(q.rsample(noise)), x))
    return torch.cat(parts)


def _weight_noise(seed: int, draw: int, num_weights: int) -> Float[Tensor, "weights"]:
    return torch.randn(num_weights, generator=generator(seed, "weights", draw))
