"""Predictions in SQL."""

import pyarrow as pa
import pytest

from core.exceptions import Invalid
from credence.scoring.model import LoadedModel
from tests.engines.conftest import OPTIONS, check

duckdb = pytest.importorskip("duckdb")
engine = pytest.importorskip("credence.engines.duckdb")


def test_a_function_gives_a_struct(model: LoadedModel, rows: pa.Table, wanted: pa.Table) -> None:
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


def test_wrong_options_are_refused_at_once(model: LoadedModel) -> None:
    with duckdb.connect() as connection, pytest.raises(Invalid, match="/sample: unknown field"):
        engine.register(connection, model, sample=3)
