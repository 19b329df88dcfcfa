"""The importance of features on held-out rows, for the model's card."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
from jaxtyping import Float
from torch import Tensor

from models.config import Json
from models.features.columns import Columns
from models.features.rows import evenly_spread
from models.likelihoods import ShapedLikelihood
from models.prediction.options import PredictOptions, Sampler
from models.prediction.outputs.contributions import PARTS
from models.tabular.model import TabularModel

MAX_ROWS, MIN_ROWS = 32, 8  # fewer rows give no standard error worth a look
SAMPLES = 16  # of methods that have only draws
MAX_SHOWN = 50  # features on the card
# Of one thread: about a second (`python -m benchmarks.verification.explanations`).
_OPERATIONS, _EVALUATIONS = 4e9, 40_000
# Numbers that the evaluations compute: of each member, output and node. Integrals over shapes of
# the target take longer than the products: 0.2 s per million numbers.
_NUMBERS = 8_000_000
_MIN_PAIRS = 8  # background rows of the widest tables
# Of each member: half of an answer's, in half of the time. On diabetes and wine that moves no
# feature's importance by more than 0.13 of its standard errors for the mean, 0.5 for aleatoric and
# 1.2 for epistemic variance.
_NODES = 8
_PER_MOMENTS = 4  # operations of closed-form moments relative to a sample
STRONG = 0.7  # half of the variance of one follows from the other
_MAX_PAIRED = 2_000  # rows: more do not change what is above 0.7
MAX_LEVELS = 50  # more are nearly names


def measure_importance(
    model: TabularModel, held_out: Float[Tensor, "rows compact"], columns: Columns
) -> Json:
    """The mean size of each feature's contributions on some held-out rows, the largest first.

    Of numbers it is the mean of |contribution|, of classes half the sum over the classes: the
    probability that the feature moves. `…_error` is its standard error over the rows. Weak features
    have about the size of the contributions' own error. An empty document if the model cannot be
    explained or so few rows would take long.

    Args:
        columns: a table with the features, for `correlated_with`: features that share importance.
    """
    explainer = model.explainer
    if explainer is None:
        return {}
    sampler: Sampler = "moments" if "moments" in model.samplers else model.samplers[0]
    draws = 1 if sampler == "moments" else SAMPLES
    nodes = _NODES if isinstance(model.likelihood, ShapedLikelihood) else 1
    numbers = model.network.layout.members * model.network.num_outputs * nodes * draws
    evaluations, runs = explainer.evaluations + 1, _PER_MOMENTS if draws == 1 else SAMPLES
    operations = max(1, model.fitted(0.0).operations) * runs * evaluations  # linear: 0
    affordable = min(_OPERATIONS // operations, _EVALUATIONS // evaluations)
    summarised = max(MIN_ROWS, _NUMBERS // (evaluations * numbers))
    rows = int(min(len(held_out), MAX_ROWS, affordable, summarised))
    if rows < MIN_ROWS:
        return {}
    # The background rows that so many rows can be compared with; of wide tables fewer.
    per_pair = max(1, explainer.evaluations // explainer.pairs)
    background = explainer.background[: max(_MIN_PAIRS, _NUMBERS // (rows * per_pair * numbers))]
    options = PredictOptions(explain=True, samples=SAMPLES, sampler=sampler, intervals=())
    x = held_out[evenly_spread(len(held_out), rows).to(held_out.device)]
    few = replace(model, background=background).with_nodes(0.0, _NODES)
    predicted = few.predict_rows(x, options)
    features = predicted.constants["features"]
    sizes = {}
    for part in PARTS:
        size = np.abs(predicted[f"{part}_contribution"])
        sizes[part] = size if size.ndim == 2 else 0.5 * size.sum(2)
    order = np.argsort(-sizes["mean"].mean(0), kind="stable")[:MAX_SHOWN]
    shown = {features[i] for i in order}
    kinds = {f.name: f.type for f in model.features if f.name in shown}
    shared = defaultdict(list)
    for first, second, value in find_dependent(columns, kinds):
        shared[first].append({"name": second, "value": round(value, 3)})
        shared[second].append({"name": first, "value": round(value, 3)})
    return {
        "rows": rows,
        "features": [
            {"name": (name := features[i])}
            | {part: float(values[:, i].mean()) for part, values in sizes.items()}
            | {f"{part}_error": _error(values[:, i]) for part, values in sizes.items()}
            | {"correlated_with": shared[name]}
            for i in order
        ],
    }


def _error(values: Float[np.ndarray, "rows"]) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5)


def find_dependent(columns: Columns, kinds: Mapping[str, str]) -> Iterator[tuple[str, str, float]]:
    """Pairs of features whose association is above `STRONG`.

    Two numbers: |r|. Two categories: Cramér's V, corrected for chance (Bergsma 2013). A number and
    a category: the correlation ratio η, corrected for the number of levels. Rows that lack one of
    the two are left out; texts and tensors have no association.

    Args:
        kinds: the type of each feature.
    """
    known = {name: kind for name, kind in kinds.items() if kind not in ("text", "tensor")}
    sampled = {name: _some(columns[name], known[name]) for name in known}
    for first, second in combinations(sampled, 2):
        value = associate(sampled[first], sampled[second])
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
    values = values[evenly_spread(len(values), _MAX_PAIRED).numpy()]
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
