"""How work is cut: chunks bound memory and keep the buffers in the processor's cache."""

from dataclasses import dataclass

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
