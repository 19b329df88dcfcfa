"""Training a model of several targets: one after the other, then their dependence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from models.config import ModelConfig
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.joint.dependence import Dependence, Transforms
from models.joint.model import JointModel, complete, labelled, transforms_of
from models.tabular.fold_problem import FoldProblem
from models.tabular.model import TabularModel
from models.tabular.row_problem import RowProblem
from models.training.progress import Progress
from models.training.train import TrainingRun, train_problem


def train_joint(
    columns: Columns,
    types: Mapping[str, str],
    configs: Sequence[ModelConfig],
    run: TrainingRun,
    device: str = "cpu",
) -> JointModel:
    """Train a model for each target on the rows that have all of them; fit their dependence.

    Each is what `train` makes of these rows. A target whose training had ended before the run was
    stopped is read from its checkpoints.

    Args:
        columns, types: as `train`, with all targets.
        configs: of each target, resolved; they agree in all but target, likelihood and network.

    Raises:
        InvalidData, Diverged, Stopped: as `train`.
    """
    columns = complete(columns, [config.target for config in configs])
    members: list[TabularModel] = []
    problems: list[RowProblem] = []
    for number, config in enumerate(configs):
        own = _of_member(run, config.target, number, len(configs))
        model, problem = train_problem(columns, types, config, own, device)
        members.append(cast(TabularModel, model))  # the recipe refuses other tasks
        problems.append(cast(RowProblem, problem))
    pairs = zip(problems, members, strict=True)
    calibrating = [_calibrating(problem, model) for problem, model in pairs]
    dependence = {prune: _dependence(calibrating, prune) for prune in members[0].variants}
    joint = JointModel.of(members, dependence)
    for prune in joint.variants:
        joint = joint.scored(prune, [problem.scores for problem in problems])
    return joint


def _of_member(run: TrainingRun, target: str, number: int, count: int) -> TrainingRun:
    """The run of one target, which reports its share of the whole."""
    report = partial(_report, run.on_progress, target, number, count)
    return replace(run, on_progress=report, checkpoint_prefix=f"target-{number}-")


def _report(
    report: Callable[[Progress], None], target: str, number: int, count: int, progress: Progress
) -> None:
    """Report as if the targets that follow took as long as this one."""
    left = count - 1 - number
    whole = progress.eta_seconds / (1 - progress.fraction) if progress.fraction < 1 else 0.0
    report(
        replace(
            progress,
            stage=f"{target}: {progress.stage}",
            fraction=(number + progress.fraction) / count,
            eta_seconds=progress.eta_seconds + left * whole,
        )
    )


def _calibrating(problem: RowProblem, model: TabularModel) -> dict[float, Transforms]:
    """The transforms of the rows that calibrate each variant; empty without such rows.

    With folds they are the learning rows, each predicted by the members that leave it out.
    """
    found = {}
    for prune, variant in model.variants_by_prune.items():
        calibration = model.calibration_of(prune)
        if isinstance(problem, FoldProblem):
            found[prune] = transforms_of(problem.out_of_fold(variant.state), calibration)
        elif problem.calibration is not None:
            found[prune] = transforms_of(labelled(model, prune, problem.calibration), calibration)
    return found


def _dependence(calibrating: Sequence[dict[float, Transforms]], prune: float) -> Dependence:
    """The dependence of a variant; unknown without rows that calibrate.

    Raises:
        InvalidData: if the targets were calibrated on different rows.
    """
    if not all(calibrating):
        return Dependence.unknown(len(calibrating))
    targets = [member[prune] for member in calibrating]
    if len({len(target.middle) for target in targets}) > 1:
        raise InvalidData(
            "the targets are calibrated on different rows: give training.folds and "
            "training.calibration_fraction",
            "/training",
        )
    return Dependence.fit(targets)
