"""The gate of a run: whether callers of the champion can use the new version, and both scores."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int

from core.context import Context
from core.datasets.labelled import labelled_columns
from core.exceptions import NotFound
from core.jobs.jobs import TrainSpec
from core.process.devices import service_device
from core.registry.registry import Version
from core.schedules.runs import Decision
from core.telemetry import tracing
from models.artifact.files import read_model
from models.config import Json, ModelConfig
from models.evaluation.gate import LEVEL, Scores, judge
from models.exceptions import Stopped
from models.features.columns import InputColumn
from models.messages import first_of
from models.model import TrainedModel
from models.prediction.options import DEFAULT_SAMPLES, PredictOptions
from worker.baselines.columns import split_table, thin
from worker.schedules.new_rows import rows_not_in

MOST_ROWS = 20_000  # more would change the standard error of a difference by less than a percent
LEAST_NEW = 100  # rows; with fewer, all held-out rows are compared
BLOCK_ROWS = 1_000  # between two calls of `should_stop`
MAX_NAMES = 20  # in a sentence


def decide(
    context: Context,
    spec: TrainSpec,
    types: Mapping[str, str],
    directory: Path,
    should_stop: Callable[[], bool],
) -> Decision:
    """Whether the trained version may have the alias.

    Args:
        types: the stored type of each column that it was trained on.
        directory: of its files.

    Raises:
        Stopped: `should_stop` returned True between two blocks of rows.
    """
    assert spec.scheduled is not None
    with tracing.span("gate"):
        torch.set_num_threads(context.settings.threads)
        challenger = read_model(directory, service_device(context.settings))
        champion = _champion(context, spec)
        number, theirs = None, None
        if champion is not None:
            number = champion.version
            path = context.registry.path(champion)
            theirs = read_model(path, service_device(context.settings))
            if changes := [*_changes(challenger, theirs, f"version {number}")]:
                advice = "Change what callers send and read, then move the alias yourself"
                return Decision(False, f"{'; '.join(changes)}. {advice}", number, {})
        held_out, weights = _held_out(context, spec, challenger.config, types)
        chosen = _choose(context, spec, held_out, champion)

        def score(model: TrainedModel) -> Scores:
            return _score_rows(context, spec, model, chosen.rows, should_stop)

        before = None if theirs is None else score(theirs)
        some = None if weights is None else torch.from_numpy(weights[chosen.rows])
        verdict = judge(score(challenger), before, spec.scheduled.gate, some)
    measured: Json = {"rows_are": chosen.name} | verdict.to_json()
    reason = f"{measured.pop('reason')} ({chosen.sentence})"
    return Decision(measured.pop("passed"), reason, number, measured)


def _changes(challenger: TrainedModel, champion: TrainedModel, theirs: str) -> Iterator[str]:
    """What would fail for callers of the champion, or change its meaning.

    Args:
        theirs: what sentences call the champion.
    """
    if challenger.targets != champion.targets:
        yield f"it predicts {_listed(challenger.targets)}, {theirs} {_listed(champion.targets)}"
    elif challenger.task != champion.task:
        yield f"its task is {challenger.task}, that of {theirs} {champion.task}"
    else:
        known, before = _classes(challenger), _classes(champion)
        if new := known - before:
            yield f"it has classes that {theirs} lacks: {_listed(sorted(new))}"
        if gone := before - known:
            yield f"it lacks classes that {theirs} has: {_listed(sorted(gone))}"
    yield from _changed_inputs(challenger, champion, theirs)


def _changed_inputs(challenger: TrainedModel, champion: TrainedModel, theirs: str) -> Iterator[str]:
    """Callers send all inputs of the champion, perhaps as lists without names, and perhaps columns
    that it takes without reading them.
    """
    needed = {column.name: _kind(column) for column in challenger.inputs}
    sent = {column.name: _kind(column) for column in champion.inputs}
    if new := needed.keys() - sent.keys():
        yield f"it needs columns that callers of {theirs} do not send: {_listed(sorted(new))}"
    if gone := {*sent, *champion.unread} - needed.keys() - challenger.unread:
        yield f"it refuses columns that {theirs} takes: {_listed(sorted(gone))}"
    both = [(name, needed[name], kind) for name, kind in sent.items() if name in needed]
    if other := [f"{name} as {kind}, not {old}" for name, kind, old in both if kind != old]:
        yield f"it takes {_listed(other)}"
    if needed == sent and [*needed] != [*sent]:
        here, there = next(pair for pair in zip(needed, sent, strict=True) if pair[0] != pair[1])
        yield f"in rows without names it takes {here} where {theirs} takes {there}"


def _classes(model: TrainedModel) -> set[str]:
    return {repr(name) for name in model.classes or ()}  # 1 and True are equal


def _kind(column: InputColumn) -> str:
    return column.type + (f" of shape {list(column.shape)}" if column.shape else "")


def _listed(names: Collection[str]) -> str:
    return first_of(list(names), MAX_NAMES)


@dataclass(frozen=True)
class _Chosen:
    """The rows to score, and a name and a sentence that say which they are."""

    rows: Int[np.ndarray, "rows"]
    name: str
    sentence: str


def _choose(
    context: Context,
    spec: TrainSpec,
    held_out: Int[np.ndarray, "held_out"],
    champion: Version | None,
) -> _Chosen:
    """Held-out rows of the new version that the champion's data set lacks; else all of them."""
    some = thin(held_out, MOST_ROWS)
    if champion is None:
        return _Chosen(some, "held_out", f"{len(some)} held-out rows")
    if champion.dataset != spec.dataset:
        new = rows_not_in(context.datasets, spec.dataset, some, champion.dataset)
        if new is not None and len(new) >= LEAST_NEW:
            said = f"{len(new)} held-out rows that are newer than version {champion.version}"
            return _Chosen(new, "new", said)
    said = f"{len(some)} held-out rows, some of which version {champion.version} may know"
    return _Chosen(some, "held_out", said)


def _champion(context: Context, spec: TrainSpec) -> Version | None:
    try:
        return context.registry.get(spec.model, spec.alias)
    except NotFound:
        return None


def _held_out(
    context: Context, spec: TrainSpec, config: ModelConfig, types: Mapping[str, str]
) -> tuple[Int[np.ndarray, "held_out"], Float[np.ndarray, "rows"] | None]:
    """The held-out rows of the training, whose split is computed again, and the rows' weights."""
    names = [config.target]
    if config.training.split_column is not None:
        names.append(config.training.split_column)
    names += [] if config.weight is None else [config.weight]
    some = {name: types[name] for name in names}
    columns = context.datasets.columns(spec.dataset, list(some), types=some)
    weights = None if config.weight is None else columns[config.weight].astype(np.float64)
    return split_table(columns, config).held_out, weights


def _score_rows(
    context: Context,
    spec: TrainSpec,
    model: TrainedModel,
    rows: Int[np.ndarray, "rows"],
    should_stop: Callable[[], bool],
) -> Scores:
    """The scores of rows of the data set, which the model reads as in its own training.

    Raises:
        Stopped: `should_stop` returned True between two blocks.
    """
    names, parts = [column.name for column in model.inputs], []
    options = PredictOptions(samples=DEFAULT_SAMPLES)
    for block in np.split(rows, range(BLOCK_ROWS, len(rows), BLOCK_ROWS)):
        if should_stop():
            raise Stopped
        columns = labelled_columns(context.datasets, spec.dataset, model, block)
        encoded = model.encode({name: columns[name] for name in names})
        truth = columns[model.config.target]
        parts.append(model.row_scores(encoded, truth, options, by_class=True))
    covered = f"coverage_{LEVEL:g}" if model.classes is None else f"set_coverage_{LEVEL:g}"
    return Scores(
        torch.cat([part["log_likelihood"] for part in parts]).double(),
        torch.cat([part[covered] for part in parts]).double(),
    )
