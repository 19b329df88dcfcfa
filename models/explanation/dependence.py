"""Which features depend on each other: they share their importance."""

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np

from models.features.columns import Columns
from models.features.rows import evenly_spread

STRONG = 0.7  # half of the variance of one follows from the other
MAX_ROWS = 2_000  # more do not change what is above 0.7
MAX_LEVELS = 50  # more are nearly names


def find_dependent(columns: Columns, kinds: Mapping[str, str]) -> Iterator[tuple[str, str, float]]:
    """Pairs of features whose association is above `STRONG`.

    Two numbers: |r|. Two categories: Cramér's V, corrected for chance (Bergsma 2013). A number and
    a category: the correlation ratio η, corrected for the number of levels. Rows that lack one of
    the two are left out; texts and tensors have no association.

    Args:
        kinds: the type of each feature.
    """
    known = {name: kind for name, kind in kinds.items() if kind not in ("text", "tensor")}
    some = {name: _some(columns[name], known[name]) for name in known}
    for first, second in combinations(some, 2):
        value = associate(some[first], some[second])
        if value > STRONG:
            yield first, second, value


def associate(a: np.ndarray, b: np.ndarray) -> float:
    """The association of two columns from 0 to 1: floats, or whole numbers of levels from 0."""
    known = _known(a) & _known(b)
    a, b = a[known], b[known]
    if len(a) < 3:
        return 0.0
    match a.dtype.kind, b.dtype.kind:
        case "f", "f":
            return _correlate(a, b)
        case "i", "i":
            return _cramer(a, b)
        case "f", "i":
            return _ratio(a, b)
    return _ratio(b, a)


def _some(values: np.ndarray, kind: str) -> np.ndarray:
    """Numbers as floats, levels as whole numbers; −1 if missing or rare among many."""
    values = values[evenly_spread(len(values), MAX_ROWS).numpy()]
    if kind != "category":
        if np.issubdtype(values.dtype, np.datetime64):
            missing = np.isnat(values)
            values = values.astype("datetime64[us]").astype(np.int64).astype(np.float64)
            values[missing] = np.nan
        return values.astype(np.float64)
    texts = np.array(["" if value is None else str(value) for value in values])
    levels, codes, counts = np.unique(texts, return_inverse=True, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:MAX_LEVELS]
    new = np.full(len(levels), -1)
    new[frequent] = np.arange(len(frequent))
    new[levels == ""] = -1
    return new[codes]


def _known(values: np.ndarray) -> np.ndarray:
    return np.isfinite(values) if values.dtype.kind == "f" else values >= 0


def _correlate(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(abs(a @ b) / scale) if scale > 0 else 0.0


def _cramer(a: np.ndarray, b: np.ndarray) -> float:
    """√(φ̃² ÷ (min(r̃, k̃) − 1)); φ̃², r̃ and k̃ without what chance adds (Bergsma 2013)."""
    a, b = (np.unique(codes, return_inverse=True)[1] for codes in (a, b))
    n, r, k = len(a), a.max() + 1, b.max() + 1
    counts = np.bincount(a * k + b, minlength=r * k).reshape(r, k)
    expected = np.outer(counts.sum(1), counts.sum(0)) / n
    phi = ((counts - expected) ** 2 / expected).sum() / n
    phi = max(0.0, phi - (r - 1) * (k - 1) / (n - 1))
    least = min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1
    return float(min(1.0, np.sqrt(phi / least))) if least > 0 else 0.0


def _ratio(values: np.ndarray, codes: np.ndarray) -> float:
    """η: the root of the share of the variance that lies between the levels, adjusted as R² is."""
    codes = np.unique(codes, return_inverse=True)[1]
    n, levels = len(values), codes.max() + 1
    total = np.square(values - values.mean()).sum()
    if total == 0 or n <= levels:
        return 0.0
    means = np.bincount(codes, values) / np.bincount(codes)
    within = np.square(values - means[codes]).sum() / total
    return float(np.sqrt(max(0.0, 1 - within * (n - 1) / (n - levels))))
