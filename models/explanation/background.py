"""The background rows of a model: training rows that explanations compare a row with."""

import torch
from jaxtyping import Float
from torch import Tensor

from models.features.encoders import TensorEncoder
from models.features.feature_encoder import FeatureEncoder
from models.features.rows import Rows
from models.randomness import generator

MIN_ROWS = 16  # fewer would not estimate a standard error
MAX_ROWS = 256
MAX_BYTES = 2**18  # of the rows together, as float32


def can_be_explained(encoder: FeatureEncoder) -> bool:
    """Whether all features are columns: an element of a tensor, such as a pixel, is none."""
    return not any(isinstance(one, TensorEncoder) for one in encoder.encoders)


def choose_background(rows: Rows, seed: int, most: int) -> Float[Tensor, "some inputs"] | None:
    """A simple random sample of encoded rows; of weighted rows with probabilities ∝ the weights.

    Wide rows are fewer, so that they take at most `MAX_BYTES`. Weighted rows are drawn with
    replacement. None where fewer than `MIN_ROWS` fit or exist.
    """
    width = max(1, rows.inputs.shape[1])
    count = min(most, MAX_BYTES // (4 * width), len(rows))
    if count < MIN_ROWS:
        return None
    source = generator(seed, "background")
    if rows.weights is None:
        index = torch.randperm(len(rows), generator=source)[:count]
    else:
        weights = rows.weights if rows.weights.ndim == 1 else rows.weights.sum(1)
        index = torch.multinomial(weights.double().cpu(), count, True, generator=source)
    return rows.inputs[index.to(rows.inputs.device)].cpu()
