"""Fits simple methods to the rows of a table's model, and compares them with it row by row."""

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import structlog
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from core.exceptions import LostClaim
from models.config import Json, SplitBy
from models.evaluation.baseline import Baseline, BaselineKind
from models.evaluation.weighting import mean, paired
from models.exceptions import Stopped
from models.features.columns import Columns
from models.features.row_weights import with_class_weights
from models.features.splits import split_key
from models.model import TrainedModel
from models.prediction.options import DEFAULT_SAMPLES, PredictOptions
from models.prediction.prediction import ClassName
from worker.baselines.classes import class_metrics, score_classes
from worker.baselines.columns import Split, read_table, split_table, thin
from worker.baselines.numbers import score_numbers
from worker.baselines.residuals import number_metrics
from worker.baselines.stopping import ShouldStop, check_stop
from worker.baselines.task import Task

MOST_PAIRS = 20_000  # held-out rows that the model predicts again, for the notes
BLOCK_ROWS = 1_000  # of them between two calls of `should_stop`
_NAMES: dict[BaselineKind, str] = {
    "constant": "the same prediction for every row",
    "linear": "a linear model",
    "boosted_trees": "boosted trees",
}

log = structlog.get_logger()


@dataclass(frozen=True)
class Scored:
    """A baseline and its proper score of each held-out row."""

    baseline: Baseline
    by_row: Float[Tensor, "rows"]


def with_table_baselines(
    model: TrainedModel,
    columns: Columns,
    types: Mapping[str, str],
    should_stop: ShouldStop,
    split: Split | None = None,
) -> TrainedModel:
    """The model with its baselines, and notes on those that it does not beat.

    A method that cannot be fitted is logged and left out. Models with tensor features stay as they
    are.

    Raises:
        Stopped, LostClaim: from `should_stop`: the job must stop, or another worker has it.
    """
    if any(feature.type == "tensor" for feature in model.features):
        return model
    try:
        split = split or split_table(columns, model.config)
        return _compare(model, columns, types, split, should_stop)
    except (LostClaim, Stopped):
        raise
    except Exception:  # the model itself is complete
        log.warning("the baselines could not be compared with the model", exc_info=True)
        return model


def _compare(
    model: TrainedModel,
    columns: Columns,
    types: Mapping[str, str],
    split: Split,
    should_stop: ShouldStop,
) -> TrainedModel:
    task, truth = _task(model, columns, types, split.learned, split.held_out, should_stop)
    check_stop(should_stop)
    _import_estimators()  # so that no method's seconds contain the import
    with _quietly():
        scored = list(_score_all(task, truth))
    if not scored:
        return model
    pairs = thin(np.arange(len(split.held_out)), MOST_PAIRS)
    score = "crps" if model.task == "regression" else "log_likelihood"
    ours = own_scores(model, score, columns, split.held_out[pairs], should_stop)
    given = task.held_out_weights
    weights = None if given is None else torch.from_numpy(given[pairs])
    found = (_note_on(s.baseline.kind, score, s.by_row[pairs], ours, weights) for s in scored)
    return replace(
        model,
        baselines=tuple(
            _with_advantage(one.baseline, score, one.by_row[pairs], ours, weights) for one in scored
        ),
        notes=(*model.notes, *(note for note in found if note)),
    )


def _task(  # noqa: PLR0917 - what a model was trained on, and where it was split
    model: TrainedModel,
    columns: Columns,
    types: Mapping[str, str],
    learned: Int[np.ndarray, "learned"],
    held_out: Int[np.ndarray, "held_out"],
    should_stop: ShouldStop,
) -> tuple[Task, Shaped[np.ndarray, "held_out"]]:
    """The task, and the truth of the held-out rows."""
    config = model.config
    table = read_table(columns, types, model.features)
    truth = columns[config.target]
    truth = truth.astype(float) if model.classes is None else _indices(truth, model.classes)
    weights = None if config.weight is None else columns[config.weight].astype(float)
    fitted = weights
    if model.classes is not None:
        fitted = with_class_weights(config.training, truth, learned, weights)
    by_group = isinstance(config.training.split, SplitBy)
    groups = split_key(config.training, columns) if by_group else None
    task = Task(
        learned=table[learned],
        truth=truth[learned],
        held_out=table[held_out],
        num_classes=None if model.classes is None else len(model.classes),
        weights=None if fitted is None else fitted[learned],
        held_out_weights=None if weights is None else weights[held_out],
        groups=None if groups is None else groups[learned],
        should_stop=should_stop,
    )
    return task, truth[held_out]


def _indices(
    values: Shaped[np.ndarray, "rows"], classes: Sequence[ClassName]
) -> Int[np.ndarray, "rows"]:
    """Indices of classes; −1 where the target is missing."""
    index = {name: i for i, name in enumerate(classes)}
    return np.array([index.get(value, -1) for value in values.tolist()], dtype=np.int64)


def _score_all(task: Task, truth: Shaped[np.ndarray, "held_out"]) -> Iterator[Scored]:
    for kind in get_args(BaselineKind):
        started = time.perf_counter()
        try:
            by_row, metrics, rows = _score(kind, task, truth)
        except (LostClaim, Stopped):
            raise
        except Exception:  # whatever scikit-learn raises
            log.warning("a baseline could not be fitted", baseline=kind, exc_info=True)
            continue
        seconds = round(time.perf_counter() - started, 3)
        yield Scored(Baseline(kind=kind, metrics=metrics, seconds=seconds, rows=rows), by_row)


def _score(
    kind: BaselineKind, task: Task, truth: Shaped[np.ndarray, "held_out"]
) -> tuple[Float[Tensor, "rows"], Json, int]:
    """The proper score of each row, the metrics, and the number of rows learned from."""
    if task.num_classes is None:
        numbers, rows = score_numbers(kind, task, truth)
        return (
            torch.from_numpy(numbers["crps"]),
            number_metrics(numbers, task.held_out_weights),
            rows,
        )
    classes, rows = score_classes(kind, task, truth)
    return classes["log_likelihood"], class_metrics(classes, task.num_classes), rows


def own_scores(
    model: TrainedModel,
    score: str,
    columns: Columns,
    rows: Int[np.ndarray, "rows"],
    should_stop: ShouldStop,
) -> Float[Tensor, "rows"]:
    """A score of the full model for these rows, in blocks between which the job can stop."""
    names, parts = [column.name for column in model.inputs], []
    for block in np.split(rows, range(BLOCK_ROWS, len(rows), BLOCK_ROWS)):
        check_stop(should_stop)
        encoded = model.encode({name: columns[name][block] for name in names})
        truth = columns[model.config.target][block]
        parts.append(
            model.row_scores(encoded, truth, PredictOptions(samples=DEFAULT_SAMPLES))[score]
        )
    return torch.cat(parts)


def _with_advantage(
    baseline: Baseline,
    score: str,
    theirs: Float[Tensor, "rows"],
    ours: Float[Tensor, "rows"],
    weights: Float[Tensor, "rows"] | None = None,
) -> Baseline:
    """The baseline with the model's advantage; the arguments are those of `_note_on`."""
    sign = -1 if score == "crps" else 1
    pair = paired(sign * ours, sign * theirs, weights)
    error = pair.standard_error
    return replace(
        baseline,
        advantage=pair.difference,
        advantage_error=error if math.isfinite(error) else None,
    )


def _note_on(
    kind: BaselineKind,
    score: str,
    theirs: Float[Tensor, "rows"],
    ours: Float[Tensor, "rows"],
    weights: Float[Tensor, "rows"] | None = None,
) -> str | None:
    """A note if the model does not beat a method, by a proper score; else None.

    Args:
        score: `crps`, lower is better, or `log_likelihood`, higher is better.
        theirs, ours: the scores of the same held-out rows.
        weights: of these rows; None if each is 1.
    """
    sign = -1 if score == "crps" else 1
    pair = paired(sign * theirs, sign * ours, weights)
    if pair.difference < 0:
        return None
    label = "CRPS" if score == "crps" else "log likelihood"
    values = f"{label} {mean(theirs, weights):.4g} and {mean(ours, weights):.4g}"
    by = f"difference per row {pair.difference:.2g}, standard error {pair.standard_error:.2g}"
    if pair.is_certain:
        return f"{_NAMES[kind]} predicted the held-out rows better than this model: {values} ({by})"
    return (
        f"{_NAMES[kind]} predicted the held-out rows as well as this model, no difference to be "
        f"seen: {values} ({by if len(ours) > 1 else 'one row'})"
    )


def _import_estimators() -> None:
    import sklearn.ensemble  # noqa: PLC0415
    import sklearn.linear_model  # noqa: F401, PLC0415


@contextmanager
def _quietly() -> Iterator[None]:
    """As many threads as torch has, and no warnings, such as of a fit that has not converged."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    limit = threadpool_limits(limits=torch.get_num_threads())
    with limit, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
