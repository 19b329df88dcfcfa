"""What is said about the target of a training: why its task was chosen, and what was found."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode

from app.ui.findings import Shown, shown
from app.ui.train_form.fields import as_json
from core.context import Context
from core.database.schema import Json
from core.datasets.dataset import Dataset
from core.datasets.findings.target_checks import check_target
from models.config import ModelConfig
from models.exceptions import InvalidData
from models.features.columns import Load
from models.training.task_choice import choose_task, explain_task

KEPT = ("target", "task", "model", "alias")  # settings that stay when the target is mended


@dataclass(frozen=True)
class AboutTarget:
    """What is said about a target.

    Args:
        notes: on the task.
        findings: on the target, with buttons for their fixes.
        then: the address of this form for a mended data set, `{id}`.
    """

    notes: Sequence[str] = ()
    findings: Sequence[Shown] = ()
    then: str = ""


def about_target(
    context: Context, dataset: Dataset, config: ModelConfig, given: Json
) -> AboutTarget:
    """What is said about the target of `config`.

    Args:
        config: the configuration of the request; its task is given if `given` has one.
    """
    load = partial(context.datasets.columns, dataset.id)
    findings = check_target(dataset, config.target, load)
    has_many_classes = any(one.code == "many_levels" for one in findings)
    return AboutTarget(
        _notes(dataset, config, load, is_said=has_many_classes),
        list(map(shown, findings)),
        _address(given),
    )


def _notes(dataset: Dataset, config: ModelConfig, load: Load, *, is_said: bool) -> tuple[str, ...]:
    """Why the task was chosen, and a warning about many classes unless a finding says it."""
    request = config, {c.name: c for c in dataset.columns}, dataset.rows, load
    try:
        chosen, notes = choose_task(*request), explain_task(*request)
    except InvalidData:
        return ()  # the form shows it as the error of the target
    return tuple(note for note in notes if note == chosen.reason) if is_said else notes


def _address(given: Json) -> str:
    kept = {name: given[name] for name in KEPT if name in given}
    return f"/ui/train?dataset={{id}}&{urlencode({'request': as_json(kept)})}"
