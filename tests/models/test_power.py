"""The power transform beside scipy's, and what it must not do to rows unlike those of training."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from pydantic import TypeAdapter
from scipy.stats import skew, yeojohnson, yeojohnson_llf

from models.config import FeatureConfig
from models.features.encoders import Encoder, fit_encoder
from models.features.numbers import NumberEncoder
from models.features.power import PowerTransform, yeo_johnson

NUMBER = FeatureConfig(name="x", type="number")


@pytest.fixture
def prices() -> np.ndarray:
    return np.exp(np.random.default_rng(0).normal(3.0, 1.2, 500))


@pytest.mark.parametrize("exponent", [0.0, 0.3, 1.0, 1.7, 2.0])
def test_the_transform_is_that_of_the_literature(exponent: float) -> None:
    z = np.linspace(-5, 5, 101)
    np.testing.assert_allclose(yeo_johnson(z, exponent), yeojohnson(z, exponent), rtol=1e-12)


def test_the_exponent_is_the_likeliest_of_those_allowed(prices: np.ndarray) -> None:
    transform = PowerTransform.fit(np.sqrt(prices))
    assert transform is not None
    z = (np.sqrt(prices) - transform.centre) / transform.scale
    grid = np.linspace(0, 2, 2001)
    best = grid[np.argmax([yeojohnson_llf(exponent, z) for exponent in grid])]
    assert transform.exponent == pytest.approx(best, abs=1e-3)


def test_a_skewed_column_becomes_nearly_symmetric(prices: np.ndarray) -> None:
    encoder = fit_encoder(NUMBER, prices)
    inputs = encoder.encode(prices)[:, 0]
    assert skew(prices) > 3
    assert abs(skew(inputs)) < 1  # a logarithm is the most that is done
    assert inputs.mean() == pytest.approx(0, abs=1e-12)
    assert inputs.std() == pytest.approx(1, abs=1e-12)


def test_many_values_are_thinned_to_quantiles_without_moving_the_exponent() -> None:
    values = np.random.default_rng(1).gamma(2.0, size=100_000)
    transform = PowerTransform.fit(values)
    assert transform is not None
    z = (values - transform.centre) / transform.scale
    grid = np.linspace(0, 1, 201)
    best = grid[np.argmax([yeojohnson_llf(exponent, z) for exponent in grid])]
    assert transform.exponent == pytest.approx(best, abs=0.02)


def test_units_do_not_matter(prices: np.ndarray) -> None:
    cents = fit_encoder(NUMBER, 100 * prices - 7).encode(100 * prices - 7)
    np.testing.assert_allclose(cents, fit_encoder(NUMBER, prices).encode(prices), atol=1e-6)


def test_what_is_far_outside_stays_far_outside(prices: np.ndarray) -> None:
    """A bounded transform would hide it from the out-of-distribution score."""
    encoder = fit_encoder(NUMBER, prices)
    most, million_times = encoder.encode(np.array([prices.max(), 1e6 * prices.max()]))[:, 0]
    assert million_times > most + 5


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=500),
        np.repeat([0.0, 1.0], [490, 10]),
        np.repeat(np.arange(10.0) ** 3, 50),
    ],
    ids=["symmetric", "two values", "ten values"],
)
def test_other_columns_stay_as_they_are(values: np.ndarray) -> None:
    encoder = fit_encoder(NUMBER, values)
    assert encoder == NumberEncoder(values.mean(), values.std(), indicator=False)


def test_missing_values_and_the_way_to_disk_and_back(prices: np.ndarray) -> None:
    prices[::7] = np.nan
    encoder = fit_encoder(NUMBER, prices)
    again = TypeAdapter(Encoder).validate_python(json.loads(json.dumps(asdict(encoder))))
    assert again == encoder
    inputs = again.encode(prices)
    assert (inputs[::7] == [0.0, 1.0]).all()
    assert np.isfinite(inputs).all()
