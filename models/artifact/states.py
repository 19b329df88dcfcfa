"""The states that an artifact may hold, and the check that their tensors fit the network.

A checksum proves that a file is as it was written, not that its contents are right.
"""

import torch
from torch import Tensor

from models.exceptions import CorruptArtifact
from models.inference.bbb import BBBState
from models.inference.chains import flat_values
from models.inference.laplace.state import Block, LaplaceState
from models.inference.mc_dropout import DropoutState
from models.inference.method import State
from models.inference.point import DrawsState
from models.inference.swag import SWAGState
from models.likelihoods import Likelihood
from models.networks import Network, point_shape

STATES: dict[str, type[State]] = {
    "mean_field": BBBState,
    "draws": DrawsState,
    "dropout": DropoutState,
    "swag": SWAGState,
    "laplace": LaplaceState,
}

Shape = tuple[int, ...]


def check_state(state: State, network: Network, likelihood: Likelihood) -> None:
    """Raise `CorruptArtifact`, naming the first tensor that does not fit the network."""
    weights, points = network.layout.num_weights, tuple(likelihood.parameters)
    shape = point_shape(network)
    match state:
        case BBBState():
            _check_points(state.point, points, shape)
            _check("loc", state.posterior.loc, (weights,))
            _check("rho", state.posterior.rho, (weights,))
        case DropoutState():
            _check_points(state.point, points, shape)
            _check("weights", state.weights, (weights,))
            _check("rates", state.rates, (len(network.mask_widths),))
            if not bool(((state.rates >= 0) & (state.rates < 1)).all()):
                raise CorruptArtifact("rates must be probabilities below 1")
        case DrawsState():
            _check_draws(state, network, points)
        case SWAGState():
            _check_swag(state, network, points)
        case LaplaceState():
            _check_draws(state.estimate, network, points)
            if len(state.estimate.weights) != 1 or not state.blocks:
                raise CorruptArtifact("a Laplace approximation has one weight vector and blocks")
            for name, block in state.blocks.items():
                _check_block(name, block, weights)
        case _:
            raise CorruptArtifact(f"{type(state).__name__} is not one of {', '.join(STATES)}")


def _check_draws(state: DrawsState, network: Network, points: tuple[str, ...]) -> None:
    draws = state.weights.shape[0] if state.weights.ndim == 2 else 0
    if not draws:
        raise CorruptArtifact("weights has no draws")
    if state.members != network.layout.members:
        raise CorruptArtifact(
            f"weights has {state.members} members; the network has {network.layout.members}"
        )
    _check("weights", state.weights, (draws, network.layout.num_weights))
    _check_points(state.point, points, (draws, *(point_shape(network) or (1,))))


def _check_swag(state: SWAGState, network: Network, points: tuple[str, ...]) -> None:
    _check_draws(state.iterate, network, points)
    values = flat_values(state.iterate)[0].shape
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
        raise CorruptArtifact(
            "count must be at least 1, snapshots at least 2, and squares not negative"
        )


def _check_block(name: str, block: Block, num_weights: int) -> None:
    name = f"block.{name}"
    rows, columns = block.scales.shape if block.scales.ndim == 2 else (0, 0)
    if not rows * columns or block.start < 0 or block.stop > num_weights:
        raise CorruptArtifact(
            f"{name} covers weights {block.start} to {block.stop}; the network has {num_weights}"
        )
    _check(f"{name}.scales", block.scales, (rows, columns))
    if bool((block.scales < 0).any()):
        raise CorruptArtifact(f"{name}.scales has negative values")
    for side, matrix, size in (("left", block.left, rows), ("right", block.right, columns)):
        if matrix is not None:
            _check(f"{name}.{side}", matrix, (size, size))


def _check_points(point: dict[str, Tensor], names: tuple[str, ...], shape: Shape) -> None:
    if set(point) != set(names):
        raise CorruptArtifact(f"point parameters are {sorted(point)}; expected {sorted(names)}")
    for name, value in point.items():
        _check(f"point.{name}", value, shape)


def _check(name: str, tensor: Tensor, shape: Shape) -> None:
    if tuple(tensor.shape) != shape or tensor.dtype != torch.float32:
        found = f"{list(tensor.shape)} of {tensor.dtype}"
        raise CorruptArtifact(f"{name} is {found}; the network needs {list(shape)} of float32")
    if not bool(tensor.isfinite().all()):
        raise CorruptArtifact(f"{name} has values that are not finite")
