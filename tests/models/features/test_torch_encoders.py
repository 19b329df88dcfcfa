"""The encoders as torch operations beside numpy, of every type of column."""

import numpy as np
import torch

from models.artifact.torch_encoders import encode_column
from models.features.categories import CategoryEncoder
from models.features.feature_encoder import FeatureEncoder
from tests.models.features.test_encoders import fit, table


def as_numbers(encoder: FeatureEncoder, columns: dict[str, np.ndarray]) -> list[torch.Tensor]:
    """The columns as an exported graph takes them; an unknown level is −1, a missing one NaN."""
    found = []
    for feature, one in zip(encoder.features, encoder.encoders, strict=True):
        values = columns[feature.name]
        if isinstance(one, CategoryEncoder):
            codes: dict[str | None, float] = {level: i for i, level in enumerate(one.levels)}
            codes[None] = np.nan
            values = np.array([codes.get(v, -1.0) for v in values.tolist()])
        elif values.dtype.kind == "M":
            known = values.astype("datetime64[us]").astype(np.int64).astype(float)
            values = np.where(np.isnat(values), np.nan, known)
        found.append(torch.from_numpy(values))
    return found


def test_they_give_the_same_compact_columns() -> None:
    """All operations are in float64; positions and scores are of order 10."""
    encoder, new = fit(table()), table(seed=1)
    new["size"][:3] = [-1e30, 1e30, 0.0]
    new["price"][:2] = [-1e6, 1e12]
    new["city"][:2] = ["Paris", None]
    blocks = [
        encode_column(one, values)
        for one, values in zip(encoder.encoders, as_numbers(encoder, new), strict=True)
    ]
    found = torch.cat(blocks, dim=1).numpy()
    np.testing.assert_allclose(found, encoder.encode(new).numpy(), atol=2e-6)


def test_a_missing_level_without_a_slot_is_unknown() -> None:
    encoder = CategoryEncoder.fit(np.array(["a"] * 4 + ["b"] * 4, dtype=object), coded=True)
    found = encode_column(encoder, torch.tensor([0.0, 1.0, 5.0, float("nan")], dtype=torch.float64))
    assert found.flatten().tolist() == [0, 1, 2, 2]
