"""A loaded model: predictions with the values of `POST /predict`, in this process."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from core.exceptions import Invalid
from core.inputs.arrow import to_columns
from core.inputs.records import decode
from core.predictions.blocks import block_rows
from core.predictions.document import to_document
from core.predictions.prediction_table import to_table, with_metadata
from credence.client.prediction import Prediction
from credence.scoring.blocks import Blocks
from credence.scoring.options import is_divisible, read_options
from credence.scoring.source import Source
from credence.scoring.tables import Rows, concatenate, read_rows, select_inputs, to_client_table
from credence.scoring.threads import limited_to
from models.features.columns import Columns, InputColumn
from models.model import TrainedModel
from models.prediction.compiled.compiler import compiler
from models.prediction.options import ResolvedOptions

EMPTY: dict[str, Any] = {"number": 0.0, "boolean": False, "category": "", "text": ""}


@dataclass(frozen=True, eq=False, repr=False)
class LoadedModel:
    """A version of a model, which predicts in this process.

    A row's values follow from the version, the row and the options: the noise is a function of
    seed, layer and sample, so that they are the same in any part of the rows, on any worker.

    A copy that is sent to another process holds the place of the files and their sum. The process
    reads them once, and predicts with one thread unless `threads` says otherwise.

    Attributes:
        name: the model's name where it was trained; of a folder the folder's.
        version: its number there; 0 if the files do not say it.
        threads: for a computation; None for those of the process.
    """

    model: TrainedModel
    name: str
    version: int
    source: Source
    threads: int | None = None

    def __repr__(self) -> str:
        return (
            f"<LoadedModel {self.name} version {self.version}: {self.model.task} of "
            f"{', '.join(map(repr, self.model.targets))} from {', '.join(self.features)}>"
        )

    def __reduce__(self) -> Any:
        return self.source.reopened, (self.threads or 1,)

    @property
    def inputs(self) -> tuple[InputColumn, ...]:
        """The columns that a prediction needs."""
        return self.model.inputs

    @property
    def features(self) -> list[str]:
        """The names of the columns that a prediction needs, in the model's order."""
        return [column.name for column in self.inputs]

    @property
    def card(self) -> dict[str, Any]:
        """What training recorded of rows, epochs and weights."""
        return dict(self.model.card)

    def describe(self) -> dict[str, Any]:
        """Task, features, settings, variants and metrics, as `GET /models/{name}/versions/{n}`."""
        return {"model": self.name, "version": self.version, **self.model.description}

    def predict(self, rows: Any, *, future: Any = None, **options: Any) -> Prediction:
        """Predict rows, or the steps after them, as `Client.predict` does.

        Args:
            rows: an Arrow table, a frame of pandas or polars, a dict of arrays, a matrix whose
                columns are `features`, or a list of records.
            future: forecasts of one series: the covariates of the steps ahead, in the same forms.
            options: those of `POST /predict` but `store` and `deadline_ms`, such as `samples`,
                `seed`, `intervals`, `quantiles`, `exceeds`, `costs`, `explain`, `prune`.

        Raises:
            Invalid, InvalidInput: an option, a column or a value is wrong; the message names it.
            TypeError, ValueError: the rows have no columns that can be read.
        """
        self._refuse_texts("document")
        table, restore = read_rows(rows, self.inputs)
        ahead = None if future is None else self._future(future)
        found = self._predicted(table, ahead, self._resolve(options))
        classes = self.model.classes
        return Prediction.of(
            to_client_table(found), None if classes is None else tuple(classes), restore
        )

    def predict_table(self, rows: Rows, **options: Any) -> pa.Table:
        """As `predict`, from Arrow to Arrow: the columns of the service's Arrow response."""
        return self._predicted(select_inputs(rows, self.inputs), None, self._resolve(options))

    def predict_batches(self, batches: Iterable[Rows], **options: Any) -> Iterator[pa.Table]:
        """The predictions of each batch of independent rows, with bounded memory.

        Options are checked at once, before the first batch. The compiled kernels answer all rows:
        a process waits for them, so that a row is not rounded otherwise at its beginning.

        Raises:
            InvalidInput: the rows of the model, or what the options ask for, cannot be divided.
        """
        resolved = self._resolve(options)
        self._check_divisible(resolved)
        if self.model.task != "forecasting":
            compiler().wait()
        select = partial(select_inputs, inputs=self.inputs)
        return (self._predicted(select(batch), None, resolved) for batch in batches)

    def blocks(self, **options: Any) -> Blocks:
        """The steps of `predict_batches`, to be run in threads. Raises as it does."""
        resolved = self._resolve(options)
        self._check_divisible(resolved)
        compiler().wait()
        return Blocks(self.model, self.name, self.version, self.threads, resolved)

    def schema(self, **options: Any) -> pa.Schema:
        """The columns of `predict_table` with these options, and their types."""
        resolved = self._resolve(options)
        self._check_divisible(resolved)
        columns = {column.name: _example(column) for column in self.inputs}
        return self._table(columns, None, resolved).schema.remove_metadata()

    def document(self, rows: Any, **options: Any) -> dict[str, Any]:
        """The members of the JSON response of `POST /predict`; the only answer about texts.

        Args:
            rows: as in `predict`; for a language model a list of strings.
        """
        resolved = self._resolve(options)
        if self._is_language:
            columns = decode(rows, self.inputs)
        else:
            columns = to_columns(read_rows(rows, self.inputs)[0], self.inputs)
        with limited_to(self.threads):
            prediction = self.model.predict_rows(self.model.read(columns, None, resolved), resolved)
            found = to_document(self.model.with_reasons(prediction, columns))
        about = {"model": self.name, "version": self.version}
        text = orjson.dumps(
            about | found,
            option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_PASSTHROUGH_DATACLASS,
            default=asdict,
        )
        document: dict[str, Any] = orjson.loads(text)
        return document

    def save(self, path: Path | str) -> None:
        """Write the version's archive, which `load` and `credence models import` read.

        Raises:
            FileExistsError: there is such a file.
        """
        self.source.save(Path(path))

    def with_threads(self, threads: int | None) -> "LoadedModel":
        """The same model with another number of threads."""
        return replace(self, threads=threads)

    def _resolve(self, options: dict[str, Any]) -> ResolvedOptions:
        return self.model.resolve(read_options(options))

    def _predicted(
        self, table: pa.Table, future: Columns | None, options: ResolvedOptions
    ) -> pa.Table:
        if not table.num_rows:
            raise Invalid([("/inputs", "there are no rows: give at least one")])
        if not (self.model.has_independent_rows and is_divisible(options)):
            return self._table(to_columns(table, self.inputs, self.model.unread), future, options)
        step = block_rows(self.model, options)
        parts = (table.slice(start, step) for start in range(0, table.num_rows, step))
        return concatenate([self._table(to_columns(p, self.inputs), None, options) for p in parts])

    def _table(
        self, columns: Columns, future: Columns | None, options: ResolvedOptions
    ) -> pa.Table:
        """The prediction of these rows at once."""
        with limited_to(self.threads):
            x = self.model.read(columns, future, options)
            prediction = self.model.predict_rows(x, options)
            prediction = self.model.with_reasons(prediction, columns)
        return with_metadata(to_table(prediction), self.name, self.version, prediction)

    def _future(self, future: Any) -> Columns:
        if not self.model.future_inputs:
            raise Invalid([("/future", "this model has no covariates: leave out future")])
        table, _ = read_rows(future, self.model.future_inputs)
        return to_columns(table, self.model.future_inputs, self.model.unread)

    @property
    def _is_language(self) -> bool:
        return self.model.task == "language_model"

    def _refuse_texts(self, other: str) -> None:
        if self._is_language:
            message = f"this is a language model, whose answers are no table: use `{other}`"
            raise Invalid([("/inputs", message)])

    def _check_divisible(self, options: ResolvedOptions) -> None:
        if not self.model.has_independent_rows:
            task = self.model.task.replace("_", " ")
            message = f"the model is for {task}, which needs all rows at once: use `predict`"
            raise Invalid([("/inputs", message)])
        if not is_divisible(options):
            message = "draws, sums over series and target_mc_error need all rows at once: "
            raise Invalid([("/inputs", message + "use `predict`")])


def _example(column: InputColumn) -> np.ndarray:
    """A row's value of the column's type, to see which columns a prediction has."""
    if column.type == "tensor":
        return np.zeros((1, *(column.shape or (1,))), np.float32)
    if column.type == "datetime":
        return np.array(["2000-01-01"], "datetime64[us]")
    if column.type in ("number", "boolean"):
        return np.array([EMPTY[column.type]], np.float64)
    return np.array([EMPTY[column.type], None], dtype=object)[:-1]
