"""What each feature contributes to the predicted mean, and to both uncertainties."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from models.prediction.answers.answer import Answer

CONTRIBUTIONS = "contributions"
"""The name of the answer to the option `explain`."""

PARTS = ("mean", "aleatoric", "epistemic")
TENSORS: Mapping[str, tuple[int, ...]] = {
    "contributions": (-1, -1),
    "aleatoric_contributions": (-1, -1),
    "epistemic_contributions": (-1, -1),
    "contribution_errors": (-1, -1),
}
"""Output tensors of the Open Inference Protocol; of classes that of the predicted one."""

_PREFIXES = {"mean": "", "aleatoric": "aleatoric_", "epistemic": "epistemic_"}


@dataclass(frozen=True)
class Contributions(Answer):
    """Shapley values of the features (`models.explanation.shapley`) with their standard errors.

    Numbers: of the mean in units of the target, of both variances in squared units. Classes: of
    all probabilities, of the expected entropy (aleatoric) and of the mutual information (epistemic)
    in nats. base + Σ contributions over the features = the answer's own mean, variance or entropy.

    Args:
        base: the mean over the background rows of each part, of probabilities one per class.
        label: the number of each row's predicted class; None for numbers.
    """

    features: tuple[str, ...]
    base: Mapping[str, Any]
    mean: Float[np.ndarray, "rows features *classes"]
    aleatoric: Float[np.ndarray, "rows features"]
    epistemic: Float[np.ndarray, "rows features"]
    mean_error: Float[np.ndarray, "rows features *classes"]
    aleatoric_error: Float[np.ndarray, "rows features"]
    epistemic_error: Float[np.ndarray, "rows features"]
    label: Int[np.ndarray, "rows"] | None = None

    @classmethod
    def of(
        cls,
        features: tuple[str, ...],
        values: Float[np.ndarray, "rows features quantities"],
        errors: Float[np.ndarray, "rows features quantities"],
        base: Float[np.ndarray, "quantities"],
        label: Int[np.ndarray, "rows"] | None,
    ) -> "Contributions":
        """From quantities in the order mean (or probabilities), aleatoric, epistemic."""
        mean = 0 if label is None else slice(-2)
        return cls(
            features,
            {
                "mean": base[mean].tolist(),
                "aleatoric": float(base[-2]),
                "epistemic": float(base[-1]),
            },
            mean=values[..., mean],
            aleatoric=values[..., -2],
            epistemic=values[..., -1],
            mean_error=errors[..., mean],
            aleatoric_error=errors[..., -2],
            epistemic_error=errors[..., -1],
            label=label,
        )

    def document(self) -> dict[str, Any]:
        parts = {name: np.ascontiguousarray(getattr(self, name)) for name in PARTS}
        errors = {name: np.ascontiguousarray(getattr(self, f"{name}_error")) for name in PARTS}
        return {
            "features": list(self.features),
            **parts,
            "standard_error": errors,
            "base": dict(self.base),
        }

    def columns(self) -> dict[str, np.ndarray]:
        """A column per part and feature, and one for its standard error.

        Those of the mean are of the predicted class. The base is the answer less their sum.
        """
        found = {}
        for part in PARTS:
            values, errors = self._of_label(part), self._of_label(f"{part}_error")
            for i, feature in enumerate(self.features):
                found[f"{_PREFIXES[part]}contribution_{feature}"] = values[:, i]
            for i, feature in enumerate(self.features):
                name = f"standard_error_{_PREFIXES[part]}contribution_{feature}"
                found[name] = errors[:, i]
        return found

    def tensors(self) -> dict[str, np.ndarray]:
        return {
            "contributions": self._of_label("mean"),
            "aleatoric_contributions": self.aleatoric,
            "epistemic_contributions": self.epistemic,
            "contribution_errors": self._of_label("mean_error"),
        }

    def _of_label(self, name: str) -> Float[np.ndarray, "rows features"]:
        values: np.ndarray = getattr(self, name)
        if values.ndim == 2 or self.label is None:
            return values
        return np.take_along_axis(values, self.label[:, None, None], axis=2)[..., 0]
