"""Variants of fewer units beside those of fewer weights, and which of the two a version stores.

Both have equally many weights. That of fewer units is a smaller dense network: it is fine-tuned as
one, in a fraction of the time, and predicts in a fraction of the time. Fewer weights lose less.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from models.config import MLPConfig
from models.evaluation.weighting import paired
from models.features.rows import Rows
from models.inference.bbb import BBBState
from models.networks import MLP
from models.networks.pruning import prune_units
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.fitted import Fitted
from models.tabular.model import make_ready
from models.tabular.row_problem import RowProblem

SAMPLES = 30  # of the variant by units, when the two are compared
_LEAST_TRIAL = 0.2
MORE_EPOCHS = 4  # most epochs of fine-tuning for one of the variant by weights


def worth_fewer_units(problem: object, full: BBBState) -> RowProblem | None:
    """The problem, if fewer units save time and held-out rows can tell what they cost, else None.

    Small layers spend their time elsewhere. With several processes each would have to choose alike.
    """
    if not isinstance(problem, RowProblem) or problem.ranks.size > 1:  # series are fitted twice
        return None
    network = problem.model.network
    if (
        not isinstance(network, MLP)
        or full.posterior.mask is not None
        or _held_out(problem) is None
    ):
        return None
    return problem if Fitted.of(network, full).has_large_layers else None


def tuning_epochs(fraction: float, epochs: int) -> int:
    """Epochs that a network with so much pruned takes as long for as the whole one for `epochs`."""
    return math.ceil(epochs * min(MORE_EPOCHS, 1 / (1 - fraction)))


def trial_share(fraction: float) -> float:
    """Rows per epoch of the try by weights: what `tuning_epochs` leave of its time, and a fifth."""
    return max(_LEAST_TRIAL, 1 - MORE_EPOCHS * (1 - fraction))


def shrink(
    problem: RowProblem, full: BBBState, fraction: float
) -> tuple[RowProblem, BBBState, Bool[Tensor, "weights"]]:
    """The problem and the state of the units that remain, and the mask of their weights."""
    network, config = problem.model.network, problem.model.config
    assert isinstance(network, MLP)
    assert isinstance(config.network, MLPConfig)
    pruned = prune_units(full.posterior, network.layout, network.dense, fraction)
    mask = pruned.mask
    assert mask is not None
    weights = network.layout.unflatten(mask)
    hidden = tuple(int(weights[layer.weight].any(1).sum()) for layer in network.dense[:-1])
    smaller = replace(config, network=replace(config.network, hidden=hidden))
    posterior = MeanFieldNormal(pruned.loc[mask], pruned.rho[mask])
    model = replace(problem.model, config=smaller)
    return replace(problem, model=model), replace(full, posterior=posterior), mask


def grow(small: BBBState, full: BBBState, mask: Bool[Tensor, "weights"]) -> BBBState:
    """The small network's state as that of the whole one, pruned elsewhere."""
    loc, rho = (part.detach().clone() for part in (full.posterior.loc, full.posterior.rho))
    loc[mask], rho[mask] = small.posterior.loc.detach(), small.posterior.rho.detach()
    return replace(small.detach(), posterior=MeanFieldNormal(loc, rho, mask))


@torch.inference_mode()
def are_as_good(problem: RowProblem, units: BBBState, weights: BBBState) -> bool:
    """Whether fewer units predict held-out rows as well as fewer weights in the same time.

    The slower network gets as many samples less as it takes operations more. It is better if its
    log likelihood is higher by more than the standard error of the difference.
    """
    rows, network = _held_out(problem), problem.model.network
    assert rows is not None
    fast, slow = make_ready(network, units), make_ready(network, weights)
    assert isinstance(fast, Fitted)
    assert isinstance(slow, Fitted)
    fewer = max(1, round(SAMPLES * fast.operations / max(1, slow.operations)))
    ahead = paired(
        _log_likelihoods(problem, slow, rows, min(SAMPLES, fewer)),
        _log_likelihoods(problem, fast, rows, SAMPLES),
        rows.weights,
    )
    return not ahead.is_clear


def _log_likelihoods(
    problem: RowProblem, fitted: Fitted, rows: Rows, samples: int
) -> Float[Tensor, "rows"]:
    model = problem.model
    outputs, point = model.engine.outputs(fitted, rows.inputs, model.default_seed, samples)
    log_prob = model.likelihood.log_prob(outputs, rows.targets, point)
    return log_prob.logsumexp(0) - math.log(samples)


def _held_out(problem: RowProblem) -> Rows | None:
    """The rows that choose: those that choose the epoch, else those for the calibration."""
    return problem.calibration if problem.stopping is None else problem.stopping
