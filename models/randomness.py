"""Reproducible randomness: a generator is a pure function of a seed and a purpose.

No generator is carried along, so a resumed run needs no generator state, and no draw depends on
how many draws came before it.
"""

from hashlib import blake2b

import torch


def derive_seed(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for one purpose, unrelated to those of all others."""
    key = "/".join(str(part) for part in (seed, *purpose)).encode()
    return int.from_bytes(blake2b(key, digest_size=8).digest()) >> 1


def generator(
    seed: int, *purpose: str | int, device: str | torch.device = "cpu"
) -> torch.Generator:
    """A fresh generator for one purpose, e.g. `generator(7, "step", 120)`."""
    return torch.Generator(device).manual_seed(derive_seed(seed, *purpose))
