"""The part of a model's card that needs the training: rows, learning curve, weights.

Scores and their chart data are among a variant's metrics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import torch

from models.config import Json
from models.inference.bbb import BBBState
from models.posteriors.pruning import signal_to_noise
from models.posteriors.variant import Variant
from models.training.row_profile import RowProfile

MAX_EPOCHS = 200  # of a learning curve: a chart shows no more
_LEAST_DB, _MOST_DB = -60, 60  # the first and last bin also hold what is beyond


def describe_training(
    rows: RowProfile, history: Sequence[Json], variants: Mapping[float, Variant]
) -> Json:
    """The part of a card that is stored with the weights: tens of kilobytes at most."""
    return {
        "rows": asdict(rows),
        "learning_curve": thin(history),
        "signal_to_noise": describe_weights(variants),
    }


def thin(history: Sequence[Json]) -> list[Json]:
    """At most `MAX_EPOCHS` epochs, evenly spread, with the first and the last.

    Half of them are epochs at whose end the held-out rows were scored.
    """
    if len(history) <= MAX_EPOCHS:
        return list(history)
    all_ = list(range(len(history)))
    scored = [i for i in all_ if history[i]["held_out_log_likelihood"] is not None]
    kept = {*_some(all_, MAX_EPOCHS // 2), *_some(scored, MAX_EPOCHS // 2)}
    return [history[i] for i in sorted(kept)]


def _some(numbers: Sequence[int], most: int) -> list[int]:
    """At most `most` of the numbers, evenly spread, with both ends."""
    if len(numbers) <= most:
        return list(numbers)
    return [numbers[i] for i in np.linspace(0, len(numbers) - 1, most).round().astype(int)]


def describe_weights(variants: Mapping[float, Variant]) -> Json | None:
    """Histogram of 20 log₁₀ |μ|/σ over all weights of the full posterior, in bins of 1 dB.

    `cuts` holds for each pruned variant the ratio below which its fraction of these weights lies.
    None for methods without a σ per weight. Source: Blundell et al. 2015, figure 3.
    """
    state = variants[0.0].state
    if not isinstance(state, BBBState):
        return None
    ratio = signal_to_noise(state.posterior).detach()  # a ratio of 0 counts as the least float32
    ratios = (20 * ratio.clamp_min(torch.finfo(torch.float32).tiny).log10()).sort().values
    bins = (ratios.floor().long() - _LEAST_DB).clamp(0, _MOST_DB - _LEAST_DB - 1)
    counts = bins.bincount(minlength=_MOST_DB - _LEAST_DB)
    used = counts.nonzero().flatten()
    first, last = int(used[0]), int(used[-1])
    places = {prune: round(prune * len(ratios)) for prune in sorted(variants) if prune > 0}
    return {
        "unit": "dB",
        "first": _LEAST_DB + first,
        "counts": counts[first : last + 1].tolist(),
        "cuts": [
            {"prune": prune, "at": float(ratios[min(place, len(ratios) - 1)])}
            for prune, place in places.items()
        ],
    }
