"""Columns of numbers encoded together are those of each encoder, to the last bit."""

import numpy as np
import pytest
import torch

from models.config import FeatureConfig
from models.features import feature_encoder
from models.features.feature_encoder import FeatureEncoder


@pytest.mark.parametrize("pieces", [False, True])
def test_few_rows_are_encoded_as_many(pieces: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    random, rows = np.random.default_rng(0), 300
    columns = {
        "plain": random.normal(size=rows),
        "skewed": np.exp(2 * random.normal(size=rows)),
        "gaps": np.where(random.random(rows) < 0.2, np.nan, random.gamma(2.0, size=rows)),
        "level": random.choice(np.array(["a", "b", None], object), rows),
        "constant": np.full(rows, 3.0),
        "flag": (random.random(rows) < 0.3).astype(float),
        "zeros": np.where(random.random(rows) < 0.7, 0.0, random.exponential(size=rows)),
    }
    types = {name: "category" if name == "level" else "number" for name in columns}
    features = [FeatureConfig(name=n, type=t) for n, t in types.items()]  # type: ignore[arg-type]
    encoder = FeatureEncoder.fit(features, types, columns, pieces=pieces)
    some = {name: values[:9].copy() for name, values in columns.items()}
    some["plain"][0], some["skewed"][1], some["zeros"][2] = 1e300, -5.0, np.nan
    together = encoder.encode(some)
    monkeypatch.setattr(feature_encoder, "MAX_ROWS", 0)
    assert torch.equal(together, encoder.encode(some))


def test_a_table_without_numbers_is_encoded() -> None:
    columns = {"level": np.array(["a", "b"] * 20, object)}
    features = [FeatureConfig(name="level", type="category")]
    encoder = FeatureEncoder.fit(features, {"level": "category"}, columns)
    assert len(encoder.encode(columns)) == 40
