"""The action with the least expected cost, and what more knowledge would save.

Minimising an expected cost: Berger 1985, Statistical Decision Theory, §1.5. The values of perfect
information: Raiffa and Schlaifer 1961, Applied Statistical Decision Theory, §4.5; of the model's
weights alone, the expected value of perfect parameter information.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from models.evaluation.calibration import Calibration
from models.exceptions import InvalidInput
from models.prediction.answers import class_costs, number_costs
from models.prediction.answers.answer import (
    Answer,
    Arrays,
    Classes,
    ErrorOf,
    Names,
    Question,
    TensorsByName,
)
from models.prediction.influence import shift
from models.prediction.number_mixture import NumberMixture
from models.prediction.options import BatchOptions, Costs, ResolvedOptions
from models.prediction.predictive import CategoricalMixture, Mixture

Name = str | float | bool


@dataclass(frozen=True)
class Decisions(Answer):
    """What to do in each row, in the unit of the costs.

    Args:
        action: a number in the target's unit, or the name of an action.
        actions: the names of all actions; None of numbers.
        expected_cost: of the action.
        value_of_information: how much the expected cost falls if the truth is known first.
        value_of_model_information: how much it falls if the weights are known first, which is the
            limit of more training data; None if it is not known.
        ask: whether asking a person costs less; None without that cost.
    """

    action: np.ndarray | list[Name]
    actions: tuple[Name, ...] | None
    expected_cost: Float[np.ndarray, "rows"]
    value_of_information: Float[np.ndarray, "rows"]
    value_of_model_information: Float[np.ndarray, "rows"] | None
    ask: Bool[np.ndarray, "rows"] | None

    def document(self) -> dict[str, Any]:
        ask = {} if self.ask is None else {"abstain": self.ask}
        return {"action": self.action} | ask | self._costs()

    def columns(self) -> dict[str, Any]:
        named = isinstance(self.action, list)
        action = Names(list(self.action), self.actions or ()) if named else self.action
        return {"action": action} | self._asks() | self._costs()

    def tensors(self) -> dict[str, np.ndarray]:
        return {"action": np.asarray(self.action)} | self._asks() | self._costs()

    def _asks(self) -> dict[str, np.ndarray]:
        return {} if self.ask is None else {"ask": self.ask}

    def _costs(self) -> dict[str, np.ndarray]:
        found = {
            "expected_cost": self.expected_cost,
            "value_of_information": self.value_of_information,
        }
        if self.value_of_model_information is not None:
            found["value_of_model_information"] = self.value_of_model_information
        return found


def of_mixture(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """The action and its expected costs under the calibrated mixture."""
    costs = _costs(options)
    if isinstance(mixture, CategoricalMixture):
        return class_costs.decide(mixture, _matrix(costs, mixture.mean()))
    return number_costs.decide(mixture, *per_unit(costs))


def errors(
    mixture: Mixture, raw: Mixture, arrays: TensorsByName, options: BatchOptions, error: ErrorOf
) -> dict[str, Tensor]:
    """Of the costs with the same actions, and of a number to act on.

    The choice of the action adds nothing to the first order: the expected cost has a minimum there
    (the envelope theorem). Nor does calibration, which moves an action with its distribution.
    """
    costs, action = _costs(options), arrays["action"]
    if isinstance(mixture, CategoricalMixture):
        parts = class_costs.influence(mixture, _matrix(costs, mixture.mean()), action)
    else:
        assert isinstance(raw, NumberMixture)
        parts = number_costs.influence(mixture, *per_unit(costs), action)
        parts["action"] = mixture.quantile_parts(action) + shift(mixture, raw)
    return {name: error(values) for name, values in parts.items()}


def answer(arrays: Arrays, options: ResolvedOptions, classes: Classes) -> Decisions:
    costs, action = _costs(options), arrays["action"]
    actions = None if classes is None else _names(costs, classes)
    expected = arrays["expected_cost"]
    return Decisions(
        action=action if actions is None else [actions[i] for i in action.astype(int).tolist()],
        actions=actions,
        expected_cost=expected,
        value_of_information=arrays["value_of_information"],
        value_of_model_information=arrays.get("value_of_model_information"),
        ask=None if costs.abstain is None else ~(expected <= costs.abstain),
    )


def check(options: BatchOptions, classes: Classes) -> None:
    """
    Raises:
        InvalidInput: costs of classes for a model of numbers, or the other way round, or another
            number of columns than classes.
    """
    costs = _costs(options)
    if classes is None and costs.matrix is not None:
        raise InvalidInput(
            "this model predicts numbers: give over and under, the costs per unit", "/costs/matrix"
        )
    if classes is None:
        return
    if costs.matrix is None:
        raise InvalidInput(
            f"this model predicts classes: give a matrix with a column for each of {_few(classes)}",
            "/costs",
        )
    if len(costs.matrix[0]) != len(classes):
        raise InvalidInput(
            f"the matrix has {len(costs.matrix[0])} columns: give one for each of the "
            f"{len(classes)} classes, in this order: {_few(classes)}",
            "/costs/matrix",
        )


def _names(costs: Costs, classes: tuple[Name, ...]) -> tuple[Name, ...]:
    """The actions: as named, else the classes of a square matrix, else the numbers of its rows."""
    assert costs.matrix is not None
    if costs.actions is not None:
        return costs.actions
    count = len(costs.matrix)
    return classes if count == len(classes) else tuple(range(count))


def _few(classes: tuple[Name, ...]) -> str:
    shown = ", ".join(str(name) for name in classes[:20])
    return shown if len(classes) <= 20 else f"{shown}, …"


def _costs(options: BatchOptions) -> Costs:
    assert options.costs is not None
    return options.costs


def _matrix(costs: Costs, like: Tensor) -> Float[Tensor, "actions classes"]:
    return torch.tensor(costs.matrix, dtype=like.dtype, device=like.device)


def per_unit(costs: Costs) -> tuple[float, float]:
    """The costs above and below the truth."""
    assert costs.over is not None
    assert costs.under is not None
    return costs.over, costs.under


_SHAPE = (-1,)

QUESTION = Question(
    "costs",
    of_mixture,
    answer,
    ("regression", "classification", "forecasting"),
    {
        "action": _SHAPE,
        "ask": _SHAPE,
        "expected_cost": _SHAPE,
        "value_of_information": _SHAPE,
        "value_of_model_information": _SHAPE,
    },
    texts={"classification": ("action",)},
    flags=("ask",),
    member="decisions",
    check=check,
    errors=errors,
)
