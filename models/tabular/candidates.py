"""A candidate of the race: inputs, widths, weight of the KL, shape of the target.

`models.tabular.race` says which is tried when; here stands how many.
"""

from dataclasses import dataclass, replace
from typing import Any

from models.config import Effort, Json, LikelihoodName, PartConfig
from models.features.targets import Target

KL_FACTOR = 10**0.5  # between neighbouring weights of the KL
_KL_BOUNDS = (3e-3, 10.0)
_FIRST_KL = 0.1  # only where the search begins: it goes on in the direction that is better
_FEW_ROWS, _NARROW, _WIDE = 3_000, (64, 64), (128, 128)  # where the search begins
OTHER_WIDTHS = (_WIDE, _NARROW, (256, 256), (128, 128, 128))
_SMALL = 5_000  # rows, up to which a candidate takes a few seconds


@dataclass(frozen=True)
class Candidate:
    """The settings of one attempt; each fold is left out by `part.members` ÷ folds members."""

    part: PartConfig
    likelihood: Any
    target: Target

    @property
    def name(self) -> str:
        """The settings in a few words."""
        part = self.part
        widths = " × ".join(map(str, part.hidden)) or "linear"
        posterior = f"KL {part.kl_weight:.3g}" if self.is_variational else "point estimates"
        inputs = "trees alone"
        if self.reads_columns:
            inputs = f"{part.inputs} inputs" + (" with trees" if part.boosted else "")
            inputs += ", path to the noise" if part.noise_path else ""
        return f"{inputs}, {widths}, {posterior}"

    @property
    def settings(self) -> Json:
        part = self.part
        return {
            "inputs": part.inputs,
            "boosted": part.boosted,
            "noise_path": part.noise_path,
            "hidden": list(part.hidden),
            "kl_weight": part.kl_weight,
            "members": part.members,
        }

    @property
    def reads_columns(self) -> bool:
        """Whether the members read more than the outputs of boosted trees."""
        return self.part.inputs != "none"

    @property
    def is_variational(self) -> bool:
        """Whether the KL counts; without it the members are point estimates."""
        return bool(self.part.kl_weight)

    def with_part(self, **changes: Any) -> "Candidate":
        return replace(self, part=replace(self.part, **changes))

    @property
    def of_trees_alone(self) -> "Candidate":
        """The candidate as a linear model of the outputs of boosted trees."""
        return self.with_part(inputs="none", hidden=(), boosted=True, noise_path=False)

    def with_kl(self, factor: float) -> "Candidate | None":
        """The candidate with `factor` times the weight of the KL; None beyond the bounds."""
        weight = float(f"{(self.part.kl_weight or 0.0) * factor:.2g}")
        low, high = _KL_BOUNDS
        return self.with_part(kl_weight=weight) if low <= weight <= high else None


@dataclass(frozen=True)
class Budget:
    """How much a training tries.

    Args:
        attempts: candidates with the chosen shape of the target.
        shapes: shapes of the target.
        race_rows: rows that the candidates are compared on; the best are then fitted to all rows.
        most_kept: candidates whose members the model has: more make it slower and hardly better.
    """

    attempts: int
    shapes: int
    race_rows: int
    most_kept: int

    @property
    def fits(self) -> int:
        """The most fits that a race may take, for its progress: a process and trees have more."""
        return self.attempts + self.shapes + 3


def plan_budget(effort: Effort, num_rows: int) -> Budget:
    """The budget, which depends on nothing but effort and rows: equal jobs give equal models."""
    many = {"quick": 3, "standard": 6, "thorough": 16}[effort]
    shapes = {"quick": 1, "standard": 3, "thorough": 5}[effort]
    race_rows = {"quick": 5_000, "standard": 20_000, "thorough": 50_000}[effort]
    share = 1.0 if num_rows <= _SMALL else 0.8
    most_kept = 3 if num_rows <= race_rows else 1
    return Budget(max(1, round(share * many)), shapes, race_rows, most_kept)


def first_candidate(
    folds: int, likelihood: LikelihoodName | Any, target: Target, num_rows: int
) -> Candidate:
    """The candidate that the search begins with."""
    hidden = _NARROW if num_rows <= _FEW_ROWS else _WIDE
    part = PartConfig(members=folds, hidden=hidden, inputs="piecewise", kl_weight=_FIRST_KL)
    return Candidate(part, likelihood, target)
