"""The action with the least expected cost, and what more knowledge would save.

Minimising an expected cost: Berger 1985, Statistical Decision Theory, §1.5. The values of perfect
information: Raiffa and Schlaifer 1961, Applied Statistical Decision Theory, §4.5; of the model's
weights alone, the expected value of perfect parameter information.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.evaluation.calibration import Calibration
from models.exceptions import InvalidInput
from models.likelihoods.class_mixture import CategoricalMixture, Mixture
from models.prediction.declared_outputs import CLASSES, NUMBERS, ROWS, Output
from models.prediction.monte_carlo_error import ErrorOf, errors_of_quantiles
from models.prediction.options import BatchOptions, Costs, ResolvedOptions
from models.prediction.outputs.question import Classes, Question, TensorsByName
from models.prediction.summary import Summary

Name = str | float | bool
Matrix = Float[Tensor, "actions classes"]
PerSample = Float[Tensor, "samples rows"]


def _output(name: str, unit: str, tasks: Sequence[str] = ROWS, member: str = "") -> Output:
    return Output(name, unit, tasks, f"decisions.{member or name}", option="costs")


OUTPUTS = (
    _output("action", "target", NUMBERS),
    _output("action", "action", CLASSES),
    _output("ask", "true or false", member="abstain"),
    _output("expected_cost", "costs"),
    _output("value_of_information", "costs"),
    _output("value_of_model_information", "costs"),
)
"""The best action; whether asking a person costs less, if that has a cost; the expected cost; how
much it falls if the truth is known first; and if the weights are, which is the limit of more
training data: not of forecasts.
"""


def of_mixture(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """The action and its expected costs under the calibrated mixture."""
    costs = _costs(options)
    if isinstance(mixture, CategoricalMixture):
        return decide_class(mixture, _matrix(costs, mixture.mean()))
    over, under = per_unit(costs)
    action = mixture.quantile(best_level(over, under))
    cost = mixture.pinball(action, over, under)
    return decision(action, cost, mixture.least_pinball(over, under))


def errors(
    mixture: Mixture, raw: Mixture, values: TensorsByName, options: BatchOptions, error: ErrorOf
) -> dict[str, Tensor]:
    """Of the costs with the same actions, and of a number to act on.

    The choice of the action adds nothing to the first order: the expected cost has a minimum there
    (the envelope theorem). Nor does calibration, which moves an action with its distribution.
    """
    costs, action = _costs(options), values["action"]
    if isinstance(mixture, CategoricalMixture):
        parts = _influence_of_classes(mixture, _matrix(costs, mixture.mean()), action)
    else:
        cost = _without_limit(action, mixture.pinball(action, *per_unit(costs)))
        least = mixture.least_pinball(*per_unit(costs))
        parts = {
            "expected_cost": cost,
            "value_of_information": cost,
            "value_of_model_information": cost - least,
        }
        level = torch.full_like(action, best_level(*per_unit(costs)))
        one = errors_of_quantiles(mixture, raw, action.unsqueeze(0), level.unsqueeze(0), error)
        return {"action": one.squeeze(0)} | {name: error(each) for name, each in parts.items()}
    return {name: error(each) for name, each in parts.items()}


def _finish(summary: Summary, options: ResolvedOptions) -> Summary:
    costs, classes = _costs(options), summary.get("classes")
    if costs.abstain is not None:
        summary = summary.with_values(ask=~(summary["expected_cost"] <= costs.abstain))
    if classes is None:
        return summary
    actions = _names(costs, classes)
    named = [actions[i] for i in summary["action"].astype(int).tolist()]
    return summary.with_values(action=named).with_constants(actions=actions)


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


QUESTION = Question("costs", ROWS, OUTPUTS, of_mixture, errors, _finish, check=check)


# Costs of classes. An action a costs M[a, k] if the class is k. With probabilities p_s of sample s,
# and their mean p, the best action has the cost min_a Σ_k M[a, k] p[k]; known classes would make it
# Σ_k p[k] min_a M[a, k], and known weights the mean over s of min_a Σ_k M[a, k] p_s[k].


def decide_class(mixture: CategoricalMixture, matrix: Matrix) -> dict[str, Tensor]:
    """Index of the best action, the first of equal ones, and its costs."""
    probabilities = mixture.mean()
    expected, action = _first_least(probabilities @ matrix.T)
    informed = probabilities @ matrix.amin(0)
    known = _least(mixture, matrix).mean(0)
    return {
        "action": action,
        "expected_cost": expected,
        "value_of_information": (expected - informed).clamp_min(0),
        "value_of_model_information": (expected - known).clamp_min(0),
    }


def _influence_of_classes(
    mixture: CategoricalMixture, matrix: Matrix, action: Int[Tensor, "rows"]
) -> dict[str, Tensor]:
    """What each sample adds to the costs of these actions."""
    cost = (mixture.probs * matrix[action]).sum(-1)
    return {
        "expected_cost": cost,
        "value_of_information": cost - mixture.probs @ matrix.amin(0),
        "value_of_model_information": cost - _least(mixture, matrix),
    }


# Of equal costs that differ by rounding the first action counts as the best.
_ROUNDING = 1e-12


def _first_least(
    costs: Float[Tensor, "rows actions"],
) -> tuple[Float[Tensor, "rows"], Int[Tensor, "rows"]]:
    least = costs.amin(-1, keepdim=True)
    tolerance = _ROUNDING * costs.abs().amax(-1, keepdim=True)
    action = (costs <= least + tolerance).int().argmax(-1)
    return costs.gather(-1, action.unsqueeze(-1)).squeeze(-1), action


def _least(mixture: CategoricalMixture, matrix: Matrix) -> PerSample:
    """The cost of each sample's best action; one action at a time, to save memory."""
    least = mixture.probs @ matrix[0]
    for costs in matrix[1:]:
        least = torch.minimum(least, mixture.probs @ costs)
    return least


# Costs of numbers. The cost over·(a − y)⁺ + under·(y − a)⁺ is the pinball loss, whose expectation
# is least at the quantile of level under/(over + under) (Koenker and Bassett 1978; the newsvendor's
# critical ratio). A known truth costs nothing: its value is the whole expected cost.


def best_level(over: float, under: float) -> float:
    """The level of the quantile that costs least."""
    return under / (over + under)


def decision(
    action: Float[Tensor, "rows"], cost: PerSample, least: PerSample | None
) -> dict[str, Tensor]:
    """The values of a decision about a number.

    Args:
        cost: of the action, under each sample.
        least: of each sample's best action; None if it is not known.
    """
    cost = _without_limit(action, cost)
    expected = cost.mean(0)
    decided = {"action": action, "expected_cost": expected, "value_of_information": expected}
    if least is not None:
        decided["value_of_model_information"] = (expected - least.mean(0)).clamp_min(0)
    return decided


def _without_limit(action: Float[Tensor, "rows"], cost: PerSample) -> PerSample:
    """0 where the action is infinite: what lies on that side of it costs nothing."""
    return torch.where(action.isinf(), 0.0, cost)
