"""Whether posteriors fit their network: what files claim is compared with what is in them.

Checksums tell that a file is what was written, not that what was written makes sense.
"""

import torch
from torch import Tensor

from models.exceptions import CorruptArtifact
from models.inference.bbb import BBBState
from models.inference.mc_dropout import DropoutState
from models.inference.method import State
from models.inference.point import DrawsState
from models.inference.swag import SWAGState, all_values
from models.likelihoods import Likelihood
from models.networks import Network

Shape = tuple[int, ...]


def check_state(state: State, network: Network, likelihood: Likelihood) -> None:
    """Raise `CorruptArtifact` naming the first tensor that cannot be this network's."""
    weights, points = network.layout.num_weights, tuple(likelihood.parameters)
    match state:
        case BBBState():
            _check_points(state.point, points, ())
            _check("loc", state.posterior.loc, (weights,))
            _check("rho", state.posterior.rho, (weights,))
        case DropoutState():
            _check_points(state.point, points, ())
            _check("weights", state.weights, (weights,))
            _check("rates", state.rates, (len(network.mask_widths),))
            if not bool(((state.rates >= 0) & (state.rates < 1)).all()):
                raise CorruptArtifact("rates are no probabilities below 1")
        case DrawsState():
            _check_draws(state, weights, points)
        case SWAGState():
            _check_swag(state, weights, points)
        case _:
            raise CorruptArtifact(f"{type(state).__name__} is no state that is kept")


def _check_draws(state: DrawsState, weights: int, points: tuple[str, ...]) -> None:
    draws = state.weights.shape[0] if state.weights.ndim == 2 else 0
    if not draws:
        raise CorruptArtifact("weights has no draws")
    _check("weights", state.weights, (draws, weights))
    _check_points(state.point, points, (draws, 1))


def _check_swag(state: SWAGState, weights: int, points: tuple[str, ...]) -> None:
    _check_draws(state.iterate, weights, points)
    values = all_values(state.iterate).shape
    _check("mean", state.mean, values)
    _check("squares", state.squares, values)
    rank = state.snapshots.shape[0] if state.snapshots.ndim == 2 else 0
    _check("snapshots", state.snapshots, (rank, *values))
    if (
        rank < 2
        or state.count.shape != ()
        or int(state.count) < 1
        or bool((state.squares < 0).any())
    ):
        raise CorruptArtifact("count, squares and snapshots are no moments of iterates")


def _check_points(point: dict[str, Tensor], names: tuple[str, ...], shape: Shape) -> None:
    if set(point) != set(names):
        raise CorruptArtifact(f"point parameters are {sorted(point)}, not {sorted(names)}")
    for name, value in point.items():
        _check(f"point.{name}", value, shape)


def _check(name: str, tensor: Tensor, shape: Shape) -> None:
    if tuple(tensor.shape) != shape or tensor.dtype != torch.float32:
        found = f"{list(tensor.shape)} of {tensor.dtype}"
        raise CorruptArtifact(f"{name} is {found}; the network has {list(shape)} of float32")
    if not bool(tensor.isfinite().all()):
        raise CorruptArtifact(f"{name} holds numbers that are not finite")
