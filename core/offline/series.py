"""Predicts the series of a data set in blocks. A series that cannot be forecast costs no other."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from core.context import Context
from core.datasets.inputs import columns_for
from core.exceptions import Invalid
from core.jobs.specs import ChunkSpec
from core.predictions.prediction_table import to_table
from core.predictions.row_groups import row_groups
from models.exceptions import InvalidInput
from models.forecasting.histories import History
from models.model import TrainedModel
from models.prediction.options import ResolvedOptions
from models.prediction.prediction import Prediction

ERROR = "error"
"""The column that says why a series has no forecast; null of all others."""

BLOCK_VALUES = 4_000_000  # of paths in memory at a time: some 100 MB
MOST_SERIES = 256  # between two calls of `should_stop`


def series_blocks(
    context: Context, model: TrainedModel, spec: ChunkSpec, options: ResolvedOptions
) -> Iterator[tuple[pa.Table, Prediction]]:
    """The forecasts of the chunk's series in blocks, and a prediction that knows their options.

    Sums over series need all of them in one block.

    Raises:
        InvalidInput: the only series of a model without a key cannot be forecast, or one of those
            that are summed.
    """
    groups = row_groups(context.datasets, spec.dataset, model) or []
    chosen = groups[spec.start : spec.stop]
    of_one = options.samples * model.values_per_sample(options) * (model.unit(options) or 1)
    step = max(1, min(MOST_SERIES, BLOCK_VALUES // of_one))
    step = len(chosen) if are_summed(options) else step
    for start in range(0, len(chosen), step):
        yield _Block(context, model, spec, options).predict(chosen[start : start + step])


def are_summed(options: ResolvedOptions) -> bool:
    """Whether a sum over series is asked for."""
    return options.totals is not None and options.totals.over_series


class _Block:
    """Predicts some series."""

    def __init__(
        self, context: Context, model: TrainedModel, spec: ChunkSpec, options: ResolvedOptions
    ) -> None:
        self._context, self._model, self._spec, self._options = context, model, spec, options

    def predict(self, series: Sequence[np.ndarray]) -> tuple[pa.Table, Prediction]:
        """A table of the series, in their order."""
        if self._model.series_column is None:
            found = self._predicted(series)
            return to_table(found), found
        try:
            found = self._predicted(series)
        except (Invalid, InvalidInput) as error:
            if are_summed(self._options):
                raise
            if len(series) > 1:
                return self._halves(series)
            found = self._nothing()
            return self._refused(series[0], error, to_table(found).schema), found
        table = to_table(found)
        return table.append_column(ERROR, pa.nulls(table.num_rows, pa.string())), found

    def _halves(self, series: Sequence[np.ndarray]) -> tuple[pa.Table, Prediction]:
        middle = len(series) // 2
        (first, found), (second, _) = self.predict(series[:middle]), self.predict(series[middle:])
        return pa.concat_tables([first, second]), found

    def _predicted(self, series: Sequence[np.ndarray]) -> Prediction:
        columns = self._columns(np.concatenate(series))
        x = self._model.read(columns, None, self._options)
        found: Prediction = self._model.predict_rows(x, self._options)
        return found

    def _columns(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        inputs = self._model.inputs
        return dict(columns_for(self._context.datasets, self._spec.dataset, inputs, rows))

    def _nothing(self) -> Prediction:
        """A prediction that has the columns of all others: of a flat series without a name."""
        blank: History = self._model.blank(self._options.horizon)
        times = np.zeros(1).astype("datetime64[us]" if self._has_dates else float)
        asked = replace(blank, series=("",), times=np.repeat(times, blank.horizon))
        found: Prediction = self._model.predict_rows(asked, self._options)
        return found

    @property
    def _has_dates(self) -> bool:
        return self._model.inputs[0].type == "datetime"

    def _refused(
        self, rows: np.ndarray, error: Invalid | InvalidInput, schema: pa.Schema
    ) -> pa.Table:
        """One row with the name of a series and why it is not forecast."""
        key = str(self._columns(rows[:1])[str(self._model.series_column)][0])
        message = error.message if isinstance(error, InvalidInput) else error.errors[0][1]
        nulls = {field.name: pa.nulls(1, field.type) for field in schema}
        told = {"series": pa.array([key]), ERROR: pa.array([message])}
        return pa.table(nulls | told)
