"""Whether products in bfloat16 are good enough for a model: their error against the samplers'."""

from dataclasses import replace

import numpy as np

from models.prediction.fitted import Fitted
from models.prediction.kernels import Bfloat16Layer
from models.prediction.local import LayerMoments
from models.prediction.prediction import Arrays

MAX_RATIO = 0.5  # of the Monte-Carlo error of 100 independent samples, root mean squares


def rounded(fitted: Fitted) -> Fitted:
    """The same posterior with every hidden layer's products but the first in bfloat16.

    The first layer sees the inputs, whose digits matter, and costs little: all samples share it.
    """
    first, *hidden = fitted.local.layers
    layers = [
        Bfloat16Layer.of(layer) if isinstance(layer, LayerMoments) else layer for layer in hidden
    ]
    return replace(fitted, local=replace(fitted.local, layers=(first, *layers)))


def is_accurate(exact: Arrays, short: Arrays) -> bool:
    """Whether the means moved by less than half of what sampling moves them anyway."""
    moved = np.square(short["mean"] - exact["mean"]).mean()
    return bool(moved <= MAX_RATIO**2 * np.square(exact["mc_error"]).mean())
