"""The power transform beside scipy's, and what it must not do to rows unlike those of training."""

import numpy as np
import pytest
import torch
from scipy.stats import yeojohnson, yeojohnson_llf

from models.config import FeatureConfig
from models.features.encoders import NumberEncoder, fit_encoder
from models.features.encodings import encode
from models.features.scales import PowerTransform, inverse_yeo_johnson, powers_of, yeo_johnson

NUMBER = FeatureConfig(name="x", type="number")
PRICES = np.exp(np.random.default_rng(0).normal(3.0, 1.2, 500))


def test_the_transform_is_that_of_the_literature_with_the_likeliest_exponent() -> None:
    z = np.linspace(-5, 5, 101)
    for exponent in (0.0, 0.3, 1.0, 1.7, 2.0):
        powers = powers_of(torch.tensor(exponent, dtype=torch.float64))
        found = yeo_johnson(torch.from_numpy(z), powers)
        np.testing.assert_allclose(found, yeojohnson(z, exponent), rtol=1e-12)
        np.testing.assert_allclose(inverse_yeo_johnson(found, powers), z, rtol=1e-12, atol=1e-12)
    transform = PowerTransform.fit(np.sqrt(PRICES))
    z = (np.sqrt(PRICES) - transform.centre) / transform.scale
    grid = np.linspace(0, 2, 2001)  # those allowed
    best = grid[np.argmax([yeojohnson_llf(exponent, z) for exponent in grid])]
    assert transform.exponent == pytest.approx(best, abs=1e-3)


def test_what_is_far_outside_stays_far_outside() -> None:
    """A bounded transform would hide it from the out-of-distribution score."""
    encoder = fit_encoder(NUMBER, PRICES)
    assert isinstance(encoder, NumberEncoder)
    values = np.array([PRICES.max(), 1e6 * PRICES.max()])
    most, million_times = encode(encoder.standard, values)
    assert million_times > most + 5


def test_other_columns_stay_as_they_are() -> None:
    symmetric = np.random.default_rng(0).normal(size=500)
    for values in (symmetric, np.repeat([0.0, 1.0], [490, 10])):
        expected = NumberEncoder(values.mean(), values.std(), indicator=False)
        assert fit_encoder(NUMBER, values) == expected
