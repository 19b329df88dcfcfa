"""Weights that let each class count as much as any other in training (`class_weight` balanced)."""

import numpy as np
from jaxtyping import Float, Int

from models.config import TrainingConfig

BALANCED_NOTE = (
    "the classes were weighed in training so that each counts the same (class_weight balanced): "
    "the probabilities are those of a population in which all classes are equally frequent; for "
    "another one, multiply them by its shares of the classes and divide by their sum. The metrics "
    "are of the held-out rows as they are, without these weights"
)


def with_class_weights(
    config: TrainingConfig,
    numbers: Int[np.ndarray, "rows"],
    learned: Int[np.ndarray, "some"] | slice,
    weights: Float[np.ndarray, "rows"] | None,
) -> Float[np.ndarray, "rows"] | None:
    """The row weights times those of the classes; the row weights alone if classes have none.

    The weight of class k is n ÷ (K n_k), with n_k learned rows of K classes that have any. Then all
    classes weigh the same and together as much as without. Rows count as their weights.

    Args:
        numbers: the class of each row.
        learned: the rows that are learned from, whose classes are counted.
    """
    if config.class_weight == "none":
        return weights
    own = np.ones(len(numbers)) if weights is None else weights
    counts = np.bincount(numbers[learned], own[learned], minlength=int(numbers.max()) + 1)
    present = counts > 0
    factors = np.ones(len(counts))
    factors[present] = counts.sum() / (present.sum() * counts[present])
    return own * factors[numbers]
