"""Uniform numbers that rows have by their number or group: the same in whatever block they are.

A random order of many rows would have to be kept in memory. The order of their hashes needs none.
"""

import numpy as np
from jaxtyping import Float, Int, UInt64

from models.randomness import derive_seed

_STEP, _FIRST, _SECOND = (
    np.uint64(constant) for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def row_hashes(
    rows: Int[np.ndarray, "rows"], seed: int, purpose: str
) -> UInt64[np.ndarray, "rows"]:
    """A hash of each row's number, independent for each seed and purpose.

    Source: SplitMix64 (Steele, Lea and Flood 2014, *Fast splittable pseudorandom number
    generators*).
    """
    mixed = rows.astype(np.uint64) * _STEP + np.uint64(derive_seed(seed, purpose))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


def row_uniforms(
    rows: Int[np.ndarray, "rows"], seed: int, purpose: str
) -> Float[np.ndarray, "rows"]:
    """A number of [0, 1) for each row."""
    return (row_hashes(rows, seed, purpose) >> np.uint64(11)) * 2.0**-53


def group_uniforms(groups: np.ndarray, seed: int, purpose: str) -> Float[np.ndarray, "rows"]:
    """A number of [0, 1) for each row, the same for all rows of a group."""
    distinct, places = np.unique(groups.astype(str), return_inverse=True)
    uniforms = [derive_seed(seed, purpose, group) / 2.0**63 for group in distinct.tolist()]
    return np.array(uniforms, np.float64)[places]
