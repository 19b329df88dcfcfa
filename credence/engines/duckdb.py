"""DuckDB: predictions by a function of Arrow batches, in SQL."""

import re
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import duckdb
import pyarrow as pa

from credence.engines.columns import struct_type, to_struct
from credence.scoring.model import LoadedModel
from models.features.columns import InputColumn

TYPES = {
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "category": "VARCHAR",
    "text": "VARCHAR",
    "datetime": "TIMESTAMP",
}


def register(
    connection: duckdb.DuckDBPyConnection,
    model: LoadedModel,
    name: str | None = None,
    **options: Any,
) -> str:
    """Create a function of the model's features, in their order, and return its name.

    `SELECT p.mean, p."lower_0.9" FROM (SELECT predict_price(size, wood) AS p FROM rows)`

    Args:
        name: by default `predict_` and the model's name.
        options: those of `LoadedModel.predict`.

    Raises:
        Invalid, InvalidInput: an option is wrong. Wrong rows fail in the query.
    """
    name = name or "predict_" + re.sub(r"\W", "_", model.name)
    create: Any = connection.create_function  # whose types know no names of enumerations
    create(
        name,
        _function(model, options),
        [_type(column) for column in model.inputs],
        duckdb.sqltype(_sql(struct_type(model, options))),
        type="arrow",
        null_handling="special",  # null is a missing value
    )
    return name


def _function(model: LoadedModel, options: dict[str, Any]) -> Callable[..., Any]:
    """A function of as many columns as the model has inputs, which DuckDB counts."""

    def predict(*columns: Any) -> "pa.Array[Any]":
        rows = pa.table(dict(zip(model.features, columns, strict=True)))
        (found,) = model.predict_batches([rows], **options)
        return to_struct(found)

    names = (f"column_{number}" for number, _ in enumerate(model.features))
    parameters = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in names]
    vars(predict)["__signature__"] = Signature(parameters)
    return predict


def _type(column: InputColumn) -> Any:
    sizes = "".join(f"[{size}]" for size in reversed(column.shape or ()))
    return duckdb.sqltype(TYPES.get(column.type, "DOUBLE") + sizes)


def _sql(type_: pa.DataType) -> str:
    """The type in SQL of a type that predictions have."""
    if pa.types.is_struct(type_):
        fields = (
            f'"{field.name.replace(chr(34), chr(34) * 2)}" {_sql(field.type)}' for field in type_
        )
        return f"STRUCT({', '.join(fields)})"
    if pa.types.is_list(type_):
        return f"{_sql(type_.value_type)}[]"
    if pa.types.is_floating(type_):
        return "DOUBLE"
    if pa.types.is_integer(type_):
        return "BIGINT"
    return "BOOLEAN" if pa.types.is_boolean(type_) else "VARCHAR"
