"""Predictions of the rows of Ray, Spark, Dask and DuckDB, and of files, with their real workers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.exceptions import Invalid
from credence.bulk.runners import RUNNERS
from credence.bulk.scoring import predict_files
from credence.scoring.model import LoadedModel
from tests.engines.conftest import OPTIONS, check, skip_without


@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.filterwarnings("ignore")  # of Ray about what it uses itself
def test_ray_gives_batches_a_struct(model: LoadedModel, rows: pa.Table, wanted: pa.Table) -> None:
    ray = pytest.importorskip("ray.data")
    engine = pytest.importorskip("credence.engines.ray")
    dataset = ray.from_arrow([rows.slice(start, 125) for start in range(0, 500, 125)])
    found = engine.predict(model, dataset, batch_size=100, **OPTIONS).sort("key").take_all()
    assert [row["key"] for row in found] == list(range(500))
    check([row["prediction"] for row in found], wanted)
    with pytest.raises(Invalid, match="/quantiles/0"):
        engine.predict(model, dataset, quantiles=[2.0])


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    skip_without("spark")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    session = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "64").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def test_spark_gives_rows_a_struct_of_typed_outputs(
    spark: Any, model: LoadedModel, rows: pa.Table, wanted: pa.Table
) -> None:
    engine = pytest.importorskip("credence.engines.spark")
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
    with pytest.raises(Invalid, match="need all rows at once"):
        engine.predict(model, frame, return_draws=True)
    with pytest.raises(ValueError, match="the rows have a column 'size'"):
        engine.predict(model, frame, column="size")


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_frame_of_dask_has_the_index_of_the_rows(
    model: LoadedModel, rows: pa.Table, wanted: pa.Table, scheduler: str
) -> None:
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed: make test-engines")
    engine = pytest.importorskip("credence.engines.dask")
    frame = dd.from_pandas(rows.to_pandas().set_index("key"), npartitions=3)
    predictions = engine.predict(model, frame, **OPTIONS)
    assert list(predictions.columns) == wanted.column_names
    found = predictions.compute(scheduler=scheduler, num_workers=2)
    assert found.index.tolist() == list(range(len(frame)))
    check(found.to_dict("records"), wanted)
    empty = engine.predict(model, frame[frame["size"] > 1e9]).compute(scheduler="sync")
    assert len(empty) == 0
    assert "mean" in empty


def test_a_function_of_duckdb_gives_a_struct(
    model: LoadedModel, rows: pa.Table, wanted: pa.Table
) -> None:
    duckdb = pytest.importorskip("duckdb")
    engine = pytest.importorskip("credence.engines.duckdb")
    with duckdb.connect() as connection:
        assert engine.register(connection, model, **OPTIONS) == "predict_price"
        connection.register("rows", rows)
        sql = "SELECT predict_price(size, wood, wet, day) AS p FROM rows ORDER BY key"
        check([row for (row,) in connection.sql(sql).fetchall()], wanted)
        means = connection.sql(
            'SELECT wood, avg(p.mean), min(p."lower_0.9") FROM '
            "(SELECT wood, predict_price(size, wood, wet, day) AS p FROM rows) GROUP BY wood"
        ).fetchall()
        assert {wood for wood, *_ in means} == {"oak", "ash", None}
        with pytest.raises(Invalid, match="/sample: unknown field"):
            engine.register(connection, model, sample=3)


@pytest.mark.parametrize("engine", ["local", "ray", "spark"])
def test_parts_are_tasks(  # noqa: PLR0917 - fixtures
    engine: str,
    model: LoadedModel,
    rows: pa.Table,
    wanted: pa.Table,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    skip_without(engine)
    if engine == "ray":
        request.getfixturevalue("ray_cluster")
    for number, start in enumerate(range(0, 500, 125)):
        pq.write_table(rows.slice(start, 125), tmp_path / f"{number}.parquet")
    folder, seen = tmp_path / "to", list[int]()
    runner, source = RUNNERS[engine], str(tmp_path / "*.parquet")
    for _ in range(2):  # the second time two parts are missing
        done = predict_files(
            model, source, folder, OPTIONS, runner=runner, keep=["key"], show=seen.append
        )
        assert done == sum(seen) == 500
        parts = sorted(folder.glob("part-*"))
        found = pa.concat_tables(map(pq.read_table, parts))
        assert found["key"].to_pylist() == list(range(500))
        check(found.to_pylist(), wanted)
        seen.clear()
        for part in parts[:2]:
            part.unlink()
