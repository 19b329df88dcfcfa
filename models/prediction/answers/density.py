"""The predictive density of a number on a grid that suits each row.

The grid leaves out a thousandth of the probability at each end. Half of its values are evenly
spread on the target's scale, half are of equal probability. Whole numbers have probabilities in
place of a density, and so have atoms, beside the density of all other values.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.evaluation.calibration import Calibration
from models.prediction.answers.answer import (
    Answer,
    Arrays,
    Classes,
    ErrorOf,
    Question,
    TensorsByName,
)
from models.prediction.answers.parts import INSTEAD, at_values, shift
from models.prediction.number_mixture import NumberMixture
from models.prediction.options import BatchOptions, ResolvedOptions
from models.prediction.outputs import NUMBERS
from models.prediction.predictive import GaussianMixture, Mixture


@dataclass(frozen=True)
class PredictedDensity(Answer):
    """The density at increasing values of each row, in 1 ÷ units of the target.

    Args:
        kind: of each row, the same for all rows of a model: "probability" if only whole numbers
            occur, else "density".
        atoms: values with a probability of their own, which the density does not count.
        atom_probabilities: their probabilities.
    """

    kind: list[str]
    values: Float[np.ndarray, "rows points"]
    density: Float[np.ndarray, "rows points"]
    atoms: Float[np.ndarray, "rows atoms"]
    atom_probabilities: Float[np.ndarray, "rows atoms"]

    def document(self) -> dict[str, Any]:
        return {
            "kind": self.kind[0],
            "values": np.ascontiguousarray(self.values),
            "density": np.ascontiguousarray(self.density),
            "atoms": [
                {"value": value, "probability": np.ascontiguousarray(probability)}
                for value, probability in self._each_atom()
            ],
        }

    def columns(self) -> dict[str, Any]:
        atoms = {f"density_atom_{value}": share for value, share in self._each_atom()}
        named = {"density_kind": self.kind, "density_values": self.values, "density": self.density}
        return named | atoms

    def tensors(self) -> dict[str, np.ndarray]:
        return {"density_values": self.values, "density": self.density}

    def _each_atom(self) -> list[tuple[float, np.ndarray]]:
        return list(zip(self.atoms[0].tolist(), self.atom_probabilities.T, strict=True))


def of_mixture(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    assert isinstance(mixture, NumberMixture)
    assert options.density is not None
    grid = mixture.grid(options.density.points)
    atoms = at_values(mixture, mixture.atom_values)
    return {
        "values": grid.T,
        "density": mixture.density(grid).T,
        "is_whole": torch.full_like(grid[0], mixture.is_whole),
        "atoms": atoms.T,
        "atom_probabilities": mixture.atom_probabilities().T,
    }


def errors(
    mixture: Mixture, raw: Mixture, arrays: TensorsByName, options: BatchOptions, error: ErrorOf
) -> dict[str, Tensor]:
    """f_s(y), and the shift of the sample times what a shift of all samples does to the density."""
    assert isinstance(mixture, NumberMixture)
    moved, found = shift(mixture, raw), []
    for value in arrays["values"].T.split(1):
        each = mixture.density_parts(value)
        if moved is not None and isinstance(mixture, GaussianMixture):
            slope = (value - mixture.means) / mixture.variances * each
            each = each + slope.mean(1) * moved
        found.append(error(each.squeeze(0)))
    return {"density": torch.stack(found, dim=-1)}


def answer(arrays: Arrays, options: ResolvedOptions, classes: Classes) -> PredictedDensity:
    kind = ["probability" if whole else "density" for whole in arrays["is_whole"].tolist()]
    names = ("values", "density", "atoms", "atom_probabilities")
    return PredictedDensity(kind, *(arrays[name] for name in names))


QUESTION = Question(
    "density",
    of_mixture,
    answer,
    NUMBERS,
    {"density_values": (-1, -1), "density": (-1, -1)},
    errors,
    INSTEAD,
)
