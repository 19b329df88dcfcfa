"""Adds to a trained model what simple methods reach on the same rows."""

from collections.abc import Mapping

from models.features.columns import Columns
from models.model import TrainedModel
from worker.baselines.columns import Split
from worker.baselines.series import with_series_baselines
from worker.baselines.stopping import ShouldStop
from worker.baselines.tables import with_table_baselines


def with_baselines(
    model: TrainedModel,
    columns: Columns,
    types: Mapping[str, str],
    should_stop: ShouldStop = lambda: False,
    split: Split | None = None,
) -> TrainedModel:
    """The model with the scores of simple methods.

    A forecaster gets those of classical methods among the metrics of its variants. A regression or
    classification of a table gets `baselines`. Notes name those that a model does not beat. Other
    models, and those with tensor features, stay as they are.

    Args:
        columns, types: the data that the model was trained on.
        split: the rows of a table to learn from and to score, if they are not those of its
            configuration.

    Raises:
        Stopped: `should_stop` returned True before an import or a fit.
    """
    match model.task:
        case "forecasting":
            return with_series_baselines(model, columns, should_stop)
        case "regression" | "classification":
            return with_table_baselines(model, columns, types, should_stop, split)
    return model
