"""Training a model from columns: fit, refit, prune, calibrate and score."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from models.card import describe_training
from models.config import ModelConfig
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.fitting.distributed import Ranks
from models.forecasting.holidays import Holidays
from models.inference.registry import method_of
from models.model import TrainedModel
from models.tabular.fold_problem import FoldProblem
from models.tabular.preparation import prepare
from models.tabular.race import Race
from models.tabular.row_problem import RowProblem
from models.training.checkpoints import LONGEST_SECONDS, Checkpoints, CheckpointSpacing
from models.training.progress import Progress, ProgressReporter
from models.training.stages import Fitting, Problem, StageRunner, total_epochs


def ignore(progress: Progress) -> None:
    """Reports nothing."""


@dataclass(frozen=True)
class TrainingRun:
    """How a training reports, stops and saves; by default it does none of these.

    Args:
        checkpoint_dir: where a stopped training can be resumed from; None saves nothing.
        checkpoint_seconds: longest time between checkpoints (`checkpoints`). A stage's end
            and a stop save one, too.
        checkpoint_prefix: begins the names of files of trainings that share a folder.
    """

    on_progress: Callable[[Progress], None] = ignore
    should_stop: Callable[[], bool] = lambda: False
    checkpoint_dir: Path | None = None
    checkpoint_seconds: float = LONGEST_SECONDS
    checkpoint_prefix: str = ""


_UNWATCHED = TrainingRun()


def train(
    columns: Columns,
    types: Mapping[str, str],
    config: ModelConfig,
    run: TrainingRun = _UNWATCHED,
    device: str = "cpu",
    *,
    holidays: Holidays | None = None,
) -> TrainedModel:
    """Train a model and its pruned variants; calibrate and score each of them on held-out rows.

    Where `torch.distributed` is initialised, all its processes call this with the same arguments
    and fit one model together (`models.fitting.distributed`). All return its posteriors. Only the
    first one reports, calls `should_stop`, keeps checkpoints, calibrates and scores.

    With `training.refit` the fit runs again, up to the best epoch of the first fit, and also uses
    the rows that chose that epoch. All later stages and all scores are of these weights. Of series
    it also uses the steps that calibrated the first fit.

    Args:
        columns: feature, target, weight and split columns, as `models.features.columns.Columns`.
        types: the stored type of each column, as in its profile.
        config: every setting filled in by `models.training.recipe.resolve`.
        holidays: of the calendar that `forecast.holidays` names.

    Raises:
        InvalidData: if the model cannot learn from the rows.
        Diverged: if a number is not finite; nothing is saved then.
        Stopped: between two mini-batches, once `run.should_stop` returns True.
    """
    return train_problem(columns, types, config, run, device, holidays=holidays)[0]


def train_problem(
    columns: Columns,
    types: Mapping[str, str],
    config: ModelConfig,
    run: TrainingRun,
    device: str = "cpu",
    *,
    holidays: Holidays | None = None,
) -> tuple[TrainedModel, Problem[Any]]:
    """`train`, with the problem that calibrated and scored the model."""
    ranks = Ranks.current()
    if ranks.size > 1 and method_of(config.method).in_one_process:
        raise InvalidData(f"method {config.method.kind!r} runs in one process", "/method/kind")
    stages = begin_stages(config, run, ranks)
    problem: Problem[Any]
    match config.task:  # each loads its own modules alone
        case "language_model":
            from models.language.text_problem import text_problem  # noqa: PLC0415

            problem = text_problem(columns, config, device)
        case "forecasting":
            from models.forecasting.problem import prepare_series  # noqa: PLC0415

            problem = prepare_series(columns, types, config, ranks, holidays=holidays).to(device)
        case _:
            problem = prepare(columns, types, config, ranks).to(device)
    return fit_problem(problem, stages, leads=ranks.leads)


def begin_stages(config: ModelConfig, run: TrainingRun, ranks: Ranks) -> StageRunner:
    """The runner of a training's stages."""
    folder, prefix = run.checkpoint_dir, run.checkpoint_prefix
    checkpoints = Checkpoints(folder, ranks, prefix) if folder else None
    on_progress = run.on_progress if ranks.leads else ignore
    reporter = ProgressReporter(total_epochs(config), on_progress)
    should_stop = partial(ranks.decide, run.should_stop)
    spacing = CheckpointSpacing(run.checkpoint_seconds)
    return StageRunner(reporter, should_stop, checkpoints, spacing)


def fit_problem(
    problem: Problem[Any], stages: StageRunner, *, leads: bool = True
) -> tuple[TrainedModel, Problem[Any]]:
    """The model of a problem, with its card, and the problem that calibrated and scored it.

    Args:
        leads: whether this process calibrates and scores.
    """
    model, problem = _fit(problem, stages)
    if not leads:
        return model, problem
    model = problem.measured(model)
    card = describe_training(problem.profile, model.history, model.variants_by_prune)
    if isinstance(problem, RowProblem):
        card |= {"importance": problem.importance(model), "held_out": problem.held_out(model)}
    return replace(model, card=card), problem


def _fit(problem: Problem[Any], stages: StageRunner) -> tuple[Any, Problem[Any]]:
    """The model with all posteriors, and the problem that calibrates and scores it."""
    if isinstance(problem, FoldProblem):
        return Race(problem, stages).run()
    first = Fitting(problem, stages)
    fit = first.fit()
    if not problem.model.config.training.refit:
        return first.model_of(fit), problem
    problem = problem.after_first(lambda: first.model_of(fit))
    second = Fitting(problem.refit(), stages, "refit-")
    return second.model_of(replace(fit, state=second.fit(fit.best_epoch).state)), problem
