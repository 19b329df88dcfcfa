"""Several series in one request: each is forecast as if it were alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.config import FeatureConfig, ForecastConfig, MAPConfig, MLPConfig
from models.exceptions import InvalidInput
from models.features.columns import Columns
from models.forecasting.model import Forecaster
from models.prediction.options import PredictOptions
from tests.models.forecasting.series_cases import QUICK, fit, months, sales

OPTIONS = PredictOptions(samples=20, horizon=3, exceeds=(100.0,))


def _shops(names: tuple[str, ...] = ("north", "south"), count: int = 96) -> dict[str, np.ndarray]:
    """Shops with sales of one scale each; a price of 1 or 2 that halves sales."""
    random = np.random.default_rng(5)
    tables = []
    for i, shop in enumerate(names):
        table, price = sales(count, seed=i), random.integers(1, 3, count).astype(float)
        of_shop = {"price": price, "shop": np.array([shop] * count, object)}
        tables.append({**table, "sales": table["sales"] / price / (1 + i), **of_shop})
    return {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}


def _one(columns: Columns, shop: str) -> Columns:
    return {name: values[columns["shop"] == shop] for name, values in columns.items()}


@pytest.fixture(scope="module")
def plain() -> Forecaster:
    """Knows no covariates."""
    columns = _shops()
    del columns["price"]
    return fit(columns, forecast=ForecastConfig(key="shop"), training=replace(QUICK, epochs=2))


@pytest.fixture(scope="module")
def priced() -> Forecaster:
    return fit(
        _shops(),
        features=(FeatureConfig(name="price", type="number"),),
        forecast=ForecastConfig(key="shop", context=12),
        training=replace(QUICK, epochs=40),
        method=MAPConfig(kind="map"),
        network=MLPConfig(hidden=(8,)),
    )


@pytest.mark.parametrize("is_sorted_by_shop", [True, False])
def test_each_series_is_forecast_as_if_alone(plain: Forecaster, is_sorted_by_shop: bool) -> None:
    columns = _shops(("south", "north", "new"))
    if not is_sorted_by_shop:
        order = np.argsort(columns["month"], kind="stable")
        columns = {name: values[order] for name, values in columns.items()}
    options = replace(OPTIONS, return_draws=True)
    together = plain.predict(columns, options)
    assert together["series"] == ["south"] * 3 + ["north"] * 3 + ["new"] * 3
    assert together["step"].tolist() == [1, 2, 3] * 3
    for i, shop in enumerate(("south", "north", "new")):
        rows = slice(3 * i, 3 * i + 3)
        alone = plain.predict(_one(columns, shop), options)
        assert (together["time"][rows] == alone["time"]).all()
        np.testing.assert_allclose(together.mean[rows], alone.mean, rtol=1e-4)
        np.testing.assert_allclose(together.draws[:, rows], alone.draws, rtol=1e-4)
        for name, values in alone.variance.items():
            np.testing.assert_allclose(together.variance[name][rows], values, rtol=1e-3)
        assert together.out_of_distribution[rows].tolist() == alone.out_of_distribution.tolist()


def test_series_may_end_at_different_times_and_are_flagged_apart(plain: Forecaster) -> None:
    columns = _shops()
    early = np.flatnonzero(columns["shop"] == "south")[-10:]
    columns = {name: np.delete(values, early) for name, values in columns.items()}
    columns["sales"][90] *= 1e6
    answer = plain.predict(columns, OPTIONS)
    starts = answer["time"].astype("datetime64[M]")[[0, 3]].astype(str).tolist()
    assert starts == ["2023-01", "2022-03"]
    each = answer["reasons"]
    flagged = [{one.code for one in row} == {"out_of_range"} for row in each]
    assert flagged == [True] * 3 + [False] * 3


def test_rows_after_the_last_target_tell_the_covariates_ahead(priced: Forecaster) -> None:
    """The same as `future`, for one series; and each series has its own."""
    columns, random = _shops(), np.random.default_rng(0)
    ahead = {shop: random.integers(1, 3, 3).astype(float) for shop in ("north", "south")}
    tables, alone = [], []
    for shop, prices in ahead.items():
        one = _one(columns, shop)
        alone.append(priced.predict(one, OPTIONS, {"price": prices}).mean)
        steps = {
            "month": months(99)[-3:],
            "sales": np.full(3, np.nan),
            "price": prices,
            "shop": np.array([shop] * 3, object),
        }
        tables.append({name: np.concatenate([one[name], steps[name]]) for name in one})
    together = {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}
    np.testing.assert_allclose(
        priced.predict(together, OPTIONS).mean, np.concatenate(alone), rtol=1e-4
    )
    with pytest.raises(InvalidInput, match="'north'") as caught:
        priced.predict(together, replace(OPTIONS, horizon=4))
    assert caught.value.path == "/inputs"


def _set(name: str, row: int, value: Any) -> Columns:
    columns = _shops()
    columns[name][row] = value
    return columns


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (_set("shop", 7, None), "row 7"),
        (_set("month", 150, months(1)[0]), "'south': row 150"),
        (_set("month", 150, np.datetime64("NaT")), "'south': row 150"),
        (_set("sales", 185, -1.0), "'south': 'sales' is -1"),
        ({k: v[:100] for k, v in _shops().items()}, "'south'.* 4 rows"),
    ],
)
def test_what_is_wrong_names_the_series(plain: Forecaster, columns: Columns, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        plain.predict(columns, OPTIONS)
    assert caught.value.path == "/inputs"
