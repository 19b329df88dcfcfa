"""The importance of features on held-out rows, for the model's card."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from torch import Tensor

from models.config import Json
from models.explanation.dependence import find_dependent
from models.features.columns import Columns
from models.features.rows import evenly_spread
from models.likelihoods import ShapedLikelihood
from models.prediction.answers.contributions import PARTS
from models.prediction.options import PredictOptions, Sampler
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
    rows = affordable_rows(model, len(held_out))
    if rows < MIN_ROWS:
        return {}
    options = PredictOptions(explain=True, samples=SAMPLES, sampler=_sampler(model), intervals=())
    x = held_out[evenly_spread(len(held_out), rows).to(held_out.device)]
    few = replace(model, background=affordable_background(model, rows)).with_nodes(0.0, _NODES)
    found = few.predict_rows(x, options)
    features = found.constants["features"]
    sizes = {part: _sizes(found[f"{part}_contribution"]) for part in PARTS}
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


def affordable_rows(model: TabularModel, held_out: int) -> int:
    """How many rows training can explain without becoming noticeably slower."""
    explainer = model.explainer
    if explainer is None:
        return 0
    runs = _PER_MOMENTS if _sampler(model) == "moments" else SAMPLES
    evaluations = explainer.evaluations + 1
    operations = max(1, model.fitted(0.0).operations) * runs * evaluations  # linear: 0
    rows = min(_OPERATIONS // operations, _EVALUATIONS // evaluations)
    summarised = max(MIN_ROWS, _NUMBERS // (evaluations * _numbers(model)))
    return int(min(held_out, MAX_ROWS, rows, summarised))


def affordable_background(model: TabularModel, rows: int) -> Tensor | None:
    """The background rows that so many rows can be compared with; of wide tables fewer."""
    explainer = model.explainer
    if explainer is None:
        return None
    per_pair = max(1, explainer.evaluations // explainer.pairs)
    most = _NUMBERS // (rows * per_pair * _numbers(model))
    return explainer.background[: max(_MIN_PAIRS, most)]


def _numbers(model: TabularModel) -> int:
    """Numbers that one evaluation computes."""
    nodes = _NODES if isinstance(model.likelihood, ShapedLikelihood) else 1
    draws = 1 if _sampler(model) == "moments" else SAMPLES
    return model.network.layout.members * model.network.num_outputs * nodes * draws


def _sampler(model: TabularModel) -> Sampler:
    return "moments" if "moments" in model.samplers else model.samplers[0]


def _sizes(values: np.ndarray) -> Float[np.ndarray, "rows features"]:
    return np.abs(values) if values.ndim == 2 else 0.5 * np.abs(values).sum(2)


def _error(values: Float[np.ndarray, "rows"]) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5)
