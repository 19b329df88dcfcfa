"""How work is cut, and functions drawn whole.

`Chunks` bounds memory and keeps the buffers in the processor's cache. `sample_functions` draws
weights, each draw shared by all rows: for draws of whole functions.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.networks import MLP
from models.posteriors import MeanFieldNormal
from models.randomness import generator

DEFAULT_MEMORY_BYTES = 256 * 2**20
# Buffers that stay in the cache save a trip to memory per activation; matrix products need some
# hundred rows to reach their speed. docs/benchmarks.md has the measurement.
CACHE_BYTES = 12 * 2**20
_BUFFERS = 4  # of the widest layer, in float32
_WORKING_COPIES = 6  # of the outputs, in float64, while they are summarised
_MIN_SAMPLES = 16  # that share the first layer's products


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
