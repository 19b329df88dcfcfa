"""What a request may ask of a prediction beside means, variances and intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch import Tensor

from models.evaluation.calibration import Calibration
from models.likelihoods.class_mixture import Mixture
from models.likelihoods.number_mixture import NumberMixture
from models.prediction.declared_outputs import Declared
from models.prediction.monte_carlo_error import ErrorOf
from models.prediction.options import BatchOptions, ResolvedOptions

TensorsByName = Mapping[str, Tensor]
Classes = tuple[str | float | bool, ...] | None

NO_NUMBERS = {
    "classification": "every answer has the probabilities of the classes in `probabilities`",
    "language_model": "every answer has the probabilities of `next_tokens`",
}
"""What models that predict no numbers answer instead, by task."""


@dataclass(frozen=True, eq=False)
class Question:
    """A question that predictive mixtures answer.

    Args:
        option: that asks it.
        tasks: of models that answer it.
        outputs: what the answer has.
        of_mixture: values by name, with a row each, from the calibrated mixture of some rows. None:
            forecasters add them.
        errors: standard errors by the name of the output, from the calibrated and the raw mixture
            and the values of `of_mixture`; None if it has none.
        finish: replaces values that no output has by those of the outputs.
        instead: by task, what models that do not answer it have.
        check: raises `InvalidInput` for an option that a model of these classes cannot answer.
    """

    option: str
    tasks: tuple[str, ...]
    outputs: Declared
    of_mixture: Callable[[Mixture, BatchOptions, Calibration | None], dict[str, Tensor]] | None
    errors: (
        Callable[[Mixture, Mixture, TensorsByName, BatchOptions, ErrorOf], dict[str, Tensor]] | None
    ) = None
    finish: Callable[[Any, ResolvedOptions], Any] | None = None
    instead: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[BatchOptions, Classes], None] | None = None

    def is_asked(self, options: BatchOptions) -> bool:
        """Whether the options ask it: theirs is given, and neither empty nor false."""
        return bool(getattr(options, self.option))


def at_values(mixture: NumberMixture, values: Sequence[float]) -> Float[Tensor, "values rows"]:
    """The same values for every row."""
    return mixture.locs.new_tensor(values).unsqueeze(-1).expand(-1, mixture.locs.shape[-1])
