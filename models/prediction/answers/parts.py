"""What the questions about numbers share: values for all rows, and what calibration moves."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from models.prediction.number_mixture import NumberMixture
from models.prediction.predictive import GaussianMixture, Mixture

INSTEAD = {
    "classification": "every answer has the probabilities of the classes in `probabilities`",
    "language_model": "every answer has the probabilities of `next_tokens`",
}
"""What models that predict no numbers answer instead, by task."""


def at_values(mixture: NumberMixture, values: Sequence[float]) -> Float[Tensor, "values rows"]:
    """The same values for every row."""
    locations = mixture.locations
    return locations.new_tensor(values).unsqueeze(-1).expand(-1, locations.shape[-1])


def shift(mixture: NumberMixture, raw: Mixture) -> Float[Tensor, "samples rows"] | None:
    """How far a sample moves all samples: calibration scales a Gaussian's about their mean."""
    if isinstance(mixture, GaussianMixture) and isinstance(raw, GaussianMixture):
        return None if mixture is raw else raw.means - mixture.means
    return None
