"""Reproducible randomness: each generator is a pure function of a seed and a purpose.

No generator is passed on between steps. So a resumed run needs no generator state, and a draw does
not depend on the number of draws before it.
"""

from hashlib import blake2b

import torch


def derive_seed(seed: int, *purpose: str | int) -> int:
    """Return a 63-bit seed for one purpose, independent of the seeds of all other purposes."""
    key = "/".join(str(part) for part in (seed, *purpose)).encode()
    return int.from_bytes(blake2b(key, digest_size=8).digest()) >> 1


def generator(
    seed: int, *purpose: str | int, device: str | torch.device = "cpu"
) -> torch.Generator:
    """Return a new generator for one purpose, e.g. `generator(7, "step", 120)`."""
    return torch.Generator(device).manual_seed(derive_seed(seed, *purpose))
