"""MLflow: a flavour, so that versions are logged, loaded and served there.

The flavour's files are the version's archive. `mlflow.pyfunc` loads it with a signature: the
model's inputs, and the outputs of the options that it was logged with.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlflow.artifacts
import mlflow.pyfunc
import pandas as pd
import pyarrow as pa
from mlflow.models import Model, ModelSignature
from mlflow.models.model import ModelInfo
from mlflow.types.schema import Array, ColSpec, DataType, Object, Property, Schema

from credence import __version__
from credence.scoring.loading import load
from credence.scoring.model import LoadedModel
from models.features.columns import InputColumn

FLAVOUR, DATA = "credence", "credence"  # the latter is a folder in MLflow's folder `data`
ARCHIVE, OPTIONS = "model.tar", "options.json"
TYPES = {
    "number": DataType.double,
    "boolean": DataType.boolean,
    "category": DataType.string,
    "text": DataType.string,
    "datetime": DataType.datetime,
}


def log_model(
    model: LoadedModel,
    name: str = "model",
    *,
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> ModelInfo:
    """Log the model; see `save_model`.

    Args:
        more: other arguments of MLflow's `Model.log`, such as `registered_model_name`.
    """
    return Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        model=model,
        options=options,
        **more,
    )


def save_model(
    model: LoadedModel,
    path: str | Path,
    *,
    options: Mapping[str, Any] | None = None,
    mlflow_model: Model | None = None,
    **more: Any,
) -> None:
    """Write the model as a folder of MLflow.

    Args:
        options: of the predictions by `mlflow.pyfunc` and `mlflow models serve`.
        more: other arguments of `mlflow.pyfunc.save_model`.

    Raises:
        Invalid, InvalidInput: an option is wrong.
    """
    chosen, about = dict(options or {}), mlflow_model or Model()
    found = signature(model, chosen)
    about.add_flavor(FLAVOUR, archive=f"data/{DATA}/{ARCHIVE}", credence_version=__version__)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / DATA
        folder.mkdir()
        model.save(folder / ARCHIVE)
        (folder / OPTIONS).write_text(json.dumps(chosen))
        mlflow.pyfunc.save_model(
            path,
            loader_module=__name__,
            data_path=str(folder),
            mlflow_model=about,
            signature=found,
            pip_requirements=[f"credence-models=={__version__}"],
            **more,
        )


def load_model(uri: str) -> LoadedModel:
    """The loaded model at an address of MLflow, such as `models:/price/1` or `runs:/…/model`."""
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=uri))
    return load(folder / "data" / DATA / ARCHIVE)


def signature(model: LoadedModel, options: Mapping[str, Any]) -> ModelSignature:
    """Inputs and outputs of the predictions with these options.

    Raises:
        ValueError: the model takes tensors, which are no columns of a table of MLflow.
    """
    outputs = [ColSpec(_type(field.type), field.name) for field in model.schema(**options)]
    return ModelSignature(Schema([_input(column) for column in model.inputs]), Schema(outputs))


class PyFunc:
    """What `mlflow.pyfunc` calls.

    Args:
        options: of every prediction.
    """

    def __init__(self, model: LoadedModel, options: Mapping[str, Any]) -> None:
        self.model = model
        self.options = options

    def predict(self, rows: pd.DataFrame, params: object = None) -> pd.DataFrame:
        """A row of predictions per row. NaN is a missing value."""
        table = pa.Table.from_pandas(rows, preserve_index=False)
        found = self.model.predict_table(table, **self.options)
        return pd.DataFrame(
            {name: _values(found[name]) for name in found.column_names}, index=rows.index
        )


def _load_pyfunc(path: str) -> PyFunc:
    """MLflow's entry for `loader_module`."""
    folder = Path(path)
    return PyFunc(load(folder / ARCHIVE), json.loads((folder / OPTIONS).read_text()))


def _values(column: "pa.ChunkedArray[Any]") -> Any:
    """Lists as Python's, which MLflow writes as JSON."""
    return column.to_pylist() if pa.types.is_nested(column.type) else column.to_pandas()


def _input(column: InputColumn) -> ColSpec:
    if column.type not in TYPES:
        raise ValueError(f"{column.name!r} is a {column.type}: MLflow has no such column")
    return ColSpec(TYPES[column.type], column.name)


def _type(type_: pa.DataType) -> Any:
    """MLflow's type of a type that predictions have."""
    if pa.types.is_struct(type_):
        fields = [Property(field.name, _type(field.type), required=False) for field in type_]
        return Object(fields)
    if pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_):
        return Array(_type(type_.value_type))
    if pa.types.is_floating(type_):
        return DataType.double
    if pa.types.is_integer(type_):
        return DataType.long
    return DataType.boolean if pa.types.is_boolean(type_) else DataType.string
