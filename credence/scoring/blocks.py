"""The steps of a prediction of independent rows, which may run in threads of their own."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from core.inputs.arrow import to_columns
from core.predictions.blocks import block_rows
from core.predictions.prediction_table import to_table, with_metadata
from credence.scoring.threads import limited_to
from models.features.columns import Columns
from models.model import TrainedModel
from models.prediction.options import ResolvedOptions


@dataclass(frozen=True)
class Encoded:
    """Rows that are ready for the network, beside the columns that they were."""

    columns: Columns
    x: Any


@dataclass(frozen=True)
class Blocks:
    """A version's predictions with some options, block by block: encode, predict, make a table."""

    model: TrainedModel
    name: str
    version: int
    threads: int | None
    options: ResolvedOptions

    def cut(self, table: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows in blocks that fit into memory with their encoding and their predictions."""
        step = block_rows(self.model, self.options)
        return (table.slice(start, step) for start in range(0, table.num_rows, step))

    def encode(self, table: pa.Table) -> Encoded:
        """The rows of a table that has the model's columns alone."""
        columns = to_columns(table, self.model.inputs)
        return Encoded(columns, self.model.read(columns, None, self.options))

    def predict(self, encoded: Encoded) -> tuple[Encoded, Any]:
        """The rows with their prediction."""
        with limited_to(self.threads):
            return encoded, self.model.predict_rows(encoded.x, self.options)

    def table(self, encoded: Encoded, prediction: Any) -> pa.Table:
        """The columns of the service's Arrow response."""
        with limited_to(self.threads):
            prediction = self.model.with_reasons(prediction, encoded.columns)
        return with_metadata(to_table(prediction), self.name, self.version, prediction)
