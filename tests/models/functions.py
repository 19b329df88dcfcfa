"""Random numbers, and whole weight draws of a posterior, as prediction makes them."""

import torch
from torch import Tensor

from models.device import DEFAULT_MEMORY_BYTES
from models.inference.bbb import BBBState
from models.networks import Network
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.whole_draws import FittedDraws


def randn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def functions(
    network: Network,
    posterior: MeanFieldNormal,
    x: Tensor,
    seed: int,
    count: int,
    *,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> Tensor:
    """Outputs: sample s is one function, evaluated at every row."""
    fitted = FittedDraws.of(network, BBBState(posterior, {}))
    return fitted.outputs(x, seed, count, memory_bytes)[0]
