"""The rows of a data set that a model predicts together: the series of a forecaster."""

import numpy as np

from core.datasets.datasets import Datasets
from core.datasets.inputs import columns_for
from models.exceptions import InvalidInput
from models.model import TrainedModel


def row_groups(datasets: Datasets, dataset: str, model: TrainedModel) -> list[np.ndarray] | None:
    """The row numbers of each group, in the order that the model needs; None of single rows.

    Raises:
        InvalidInput: a row belongs to no group.
    """
    if model.group_columns is None:
        return None
    wanted = [column for column in model.inputs if column.name in model.group_columns]
    try:
        return model.row_groups(columns_for(datasets, dataset, wanted))
    except InvalidInput as error:
        raise InvalidInput(error.message, "/dataset") from None
