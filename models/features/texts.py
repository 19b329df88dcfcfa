"""The encoder of free text: hashed words and word pairs.

The features of a text are its words and its pairs of neighbouring words, without case. The encoder
knows those that occur in most training rows, and weights each by how often it occurs in the text
and how rare it is in the training rows (tf-idf, Salton and Buckley 1988):

    w_f = (1 + ln tf_f) · (1 + ln((1 + n) ÷ (1 + df_f)))

A hash h gives each feature one of m places and a sign ξ. With w of all its known features a text is

    φ_i = Σ_{f: h(f) = i} ξ(f) w_f,    x ↦ √m · φ ÷ ‖φ‖

The signs make inner products unbiased: E ⟨φ, φ'⟩ = ⟨w, w'⟩ (Weinberger et al. 2009, *Feature
Hashing for Large Scale Multitask Learning*). Texts of all lengths have the same norm, and inputs
have mean square 1. Rare features are left out because each adds noise to a place that a frequent
one uses: with all pairs, most of a text's norm is words that no other row has.

The hash is CRC-32 of UTF-8, mixed by the finaliser of MurmurHash3: equal texts have equal inputs on
all machines. A model stores hashes, not words.
"""

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval, Len
from jaxtyping import Float

from models.features.expansion import Form
from models.features.weighted import Weights

WIDTH = 512
_MANY_ROWS, _NARROW = 100_000, 256  # a million rows then take 1 GiB
MAX_KNOWN = 1_024  # twice the places: more features would be heard less than their noise
_LEAST = 3  # training rows of a feature: fewer teach nothing
_COUNTED = 20_000  # rows whose features are counted, evenly spread
_MAX_WORDS = 10_000  # of one text that are read
_BLOCK = 2_048  # rows at once
_WORD = re.compile(r"\w+")

Hash = Annotated[int, Interval(ge=0, lt=2**32)]
Rarity = Annotated[float, Interval(ge=0, le=1_000)]


@dataclass(frozen=True)
class TextEncoder:
    """Hashed words and word pairs.

    Args:
        hashes: of the known features, ascending; none if no feature tells texts apart.
        rarity: 1 + ln((1 + n) ÷ (1 + df)) of each.
        width: the number of places.
    """

    hashes: Annotated[tuple[Hash, ...], Len(0, MAX_KNOWN)]
    rarity: Annotated[tuple[Rarity, ...], Len(0, MAX_KNOWN)]
    width: Annotated[int, Interval(ge=1, le=WIDTH)] = WIDTH
    kind: Literal["text"] = "text"

    @classmethod
    def fit(cls, values: np.ndarray, weights: Weights | None = None) -> "TextEncoder":
        """Choose the features that most training texts have.

        Args:
            weights: of the rows, above 0; None if each is 1.
        """
        step = max(1, -(-len(values) // _COUNTED))
        rows = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
        texts, rows = _texts(values[::step]), rows[::step]
        counts: Counter[int] = Counter()
        for start, features in _blocks(texts):
            distinct, place = np.unique(features.hashes, return_inverse=True)
            sums = np.bincount(place, weights=rows[start + features.rows], minlength=len(distinct))
            counts.update(dict(zip(distinct.tolist(), sums.tolist(), strict=True)))
        total = rows.sum()
        kept = [h for h, count in counts.items() if _LEAST <= count < total]
        kept = sorted(sorted(kept, key=lambda h: (-counts[h], h))[:MAX_KNOWN])
        rarity = (round(1 + math.log((1 + total) / (1 + counts[h])), 4) for h in kept)
        width = WIDTH if len(values) <= _MANY_ROWS else _NARROW
        return cls(tuple(kept), tuple(rarity), width)

    @property
    def form(self) -> Form:
        return Form(plain=self.width if self.hashes else 0)

    def read(self, values: np.ndarray) -> Float[np.ndarray, "rows width"]:
        """The inputs of texts; those of a text without known features are 0."""
        texts = _texts(values)
        if not self.hashes:
            return np.empty((len(texts), 0), dtype=np.float32)
        encoded = np.zeros((len(texts), self.width), dtype=np.float32)
        for start, features in _blocks(texts):
            rows = min(_BLOCK, len(texts) - start)
            encoded[start : start + rows] = self._encode(features, rows)
        return encoded

    def _encode(self, found: "_Features", rows: int) -> np.ndarray:
        known, rarity = np.array(self.hashes), np.array(self.rarity)
        at = np.searchsorted(known, found.hashes).clip(max=len(known) - 1)
        weights = (1 + np.log(found.counts)) * rarity[at] * (known[at] == found.hashes)
        signs = 1.0 - 2.0 * (found.hashes >> 31)
        places = found.rows * self.width + found.hashes % self.width
        total = np.bincount(places, weights=signs * weights, minlength=rows * self.width)
        sums = total.astype(np.float64).reshape(rows, self.width)  # without features: integers
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        scaled = math.sqrt(self.width) * sums
        return np.divide(scaled, norms, out=np.zeros_like(sums), where=norms > 0)


@dataclass(frozen=True)
class _Features:
    """The features of several texts, each with its row, hash and number of occurrences."""

    rows: np.ndarray
    hashes: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[str]) -> "_Features":
        counted = [Counter(_words(text)) for text in texts]
        names = [name for counts in counted for name in counts]
        hashed = {name: zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in set(names)}
        return cls(
            np.repeat(np.arange(len(texts)), [len(counts) for counts in counted]),
            _mixed(np.array([hashed[name] for name in names], dtype=np.uint32)),
            np.array([n for counts in counted for n in counts.values()], dtype=np.float64),
        )


def _blocks(texts: Sequence[str]) -> Iterator[tuple[int, _Features]]:
    """The features of the texts, block by block, with the number of the first text."""
    for start in range(0, len(texts), _BLOCK):
        yield start, _Features.of(texts[start : start + _BLOCK])


def _texts(values: np.ndarray) -> list[str]:
    return ["" if value is None else value for value in values.tolist()]


def _words(text: str) -> list[str]:
    words = _WORD.findall(text.casefold())[:_MAX_WORDS]
    return [*words, *(f"{first} {second}" for first, second in pairwise(words))]


def _mixed(hashes: np.ndarray) -> np.ndarray:
    """Hashes whose parts are independent, as those of CRC-32 are not: place and sign are parts."""
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (hashes ^ (hashes >> np.uint32(16))).astype(np.int64)
