"""The recommended recipe: fills in what a configuration leaves open, from the data profile."""

from collections.abc import Mapping, Sequence

from models.config import MLPConfig, ModelConfig
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Load, column_of
from models.features.row_weights import without_weight_0
from models.tabular.row_recipe import resolve_rows
from models.training.task_choice import choose_task


def resolve(
    config: ModelConfig,
    profiles: Sequence[ColumnProfile],
    num_rows: int,
    load: Load | None = None,
    *,
    once: bool = False,
) -> ModelConfig:
    """The configuration with every None replaced by what the recipe recommends.

    Rows of weight 0 count as absent.

    Args:
        load: reads columns by name: those of a series, and a target whose values say its task.
        once: a table is fitted once also where its recipe could be chosen by a race, so that
            methods are compared on one network.

    Raises:
        InvalidData: naming the column or setting that cannot work, with a JSON pointer.
    """
    columns: Mapping[str, ColumnProfile] = {profile.name: profile for profile in profiles}
    columns, num_rows = without_weight_0(columns, num_rows, config.weight, load)
    target = column_of(columns, config.target, "/target")
    task = choose_task(config, columns, num_rows, load).task
    if config.training.class_weight != "none" and task != "classification":
        message = f"a {task} has no classes to weigh: leave class_weight out"
        raise InvalidData(message, "/training/class_weight")
    if task == "language_model":
        from models.language.text_recipe import resolve_language  # noqa: PLC0415 - tables do without

        _check_no_trees(config)
        return resolve_language(config, target, num_rows)
    resolved = resolve_rows(config, columns, task, num_rows, load, once=once)
    if resolved.training.folds is None:
        _check_no_trees(config)
    return resolved


def _check_no_trees(config: ModelConfig) -> None:
    """Refuse boosted inputs of a training that chooses nothing on its rows."""
    message = "boosted trees grow only where training chooses the recipe of a table: leave it out"
    if config.inputs.boosted:
        raise InvalidData(message, "/inputs/boosted")
    for i, part in enumerate(
        (isinstance(config.network, MLPConfig) and config.network.parts) or ()
    ):
        if part.boosted:
            raise InvalidData(message, f"/network/parts/{i}/boosted")
        if part.inputs == "none":
            nothing = "without boosted trees a part with inputs none reads nothing"
            raise InvalidData(f"{nothing}: plain or piecewise", f"/network/parts/{i}/inputs")
