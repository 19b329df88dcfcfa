"""Predictions by Spark's `mapInArrow`, with a real JVM and Python workers."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from core.exceptions import Invalid
from credence.scoring.model import LoadedModel
from tests.engines.conftest import OPTIONS, check, skip_without

skip_without("spark")
engine = pytest.importorskip("credence.engines.spark")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    session = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "64").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def test_rows_get_a_struct_of_typed_outputs(
    spark: Any, model: LoadedModel, rows: pa.Table, wanted: pa.Table
) -> None:
    frame = spark.createDataFrame(rows).repartition(3)
    scored = engine.predict(model, frame, **OPTIONS)
    assert scored.columns == [*rows.column_names, "prediction"]
    types = dict(scored.select("prediction.*").dtypes)
    assert (types["mean"], types["out_of_distribution"]) == ("double", "boolean")
    assert types["density"] == "array<double>"
    found = scored.orderBy("key").collect()
    assert [row["key"] for row in found] == list(range(500))
    check([row["prediction"].asDict(recursive=True) for row in found], wanted)
    high = scored.where("prediction.mean > 1").count()
    assert high == sum(value > 1 for value in wanted["mean"].to_pylist())


def test_what_is_wrong_is_said_first(spark: Any, model: LoadedModel, rows: pa.Table) -> None:
    frame = spark.createDataFrame(rows.slice(0, 5))
    with pytest.raises(Invalid, match="need all rows at once"):
        engine.predict(model, frame, return_draws=True)
    with pytest.raises(ValueError, match="the rows have a column 'size'"):
        engine.predict(model, frame, column="size")
