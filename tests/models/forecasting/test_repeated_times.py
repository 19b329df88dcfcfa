"""Two rows of one time in a series: which they are, and what would be right."""

import numpy as np
import pytest

from models.config import ForecastConfig
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.forecasting.series import split_series


def _tills() -> dict[str, np.ndarray]:
    days = np.datetime64("2024-01-01", "us") + np.arange(10) * np.timedelta64(1, "D")
    return {
        "day": np.tile(days, 2),
        "shop": np.repeat(np.array(["north", "south"], dtype=object), 10),
        "sold": np.arange(20.0),
    }


def _error(columns: Columns, forecast: ForecastConfig) -> InvalidData:
    with pytest.raises(InvalidData) as error:
        split_series(columns, "sold", forecast)
    return error.value


def test_with_a_key_the_rows_are_named_and_no_key_is_advised() -> None:
    columns = _tills()
    columns["day"][14] = columns["day"][13]
    error = _error(columns, ForecastConfig(time="day", key="shop"))
    assert error.path == "/forecast/time"
    assert error.rows == [13, 14]
    assert str(error) == (
        "shop 'south' has 2 rows of day 2024-01-04: a series has one value at a time. Keep "
        "one of the rows, or add them up (rows 13 and 14, counting from 0)"
    )


def test_without_a_key_the_key_is_advised_and_the_other_times_are_counted() -> None:
    error = _error(_tills(), ForecastConfig(time="day"))
    assert error.path == "/forecast/key"
    assert "the table has 2 rows of day 2024-01-01, and 9 more such times" in str(error)
    assert "name the column of the series in forecast.key (rows 0 and 10, counting" in str(error)


def test_lines_of_a_file_take_the_place_of_rows() -> None:
    error = InvalidData("wrong", "/data", [3, 4, 9]).in_file(2)
    assert (str(error), error.path) == ("wrong (lines 5, 6 and 11)", "/data")
