"""Whole weight draws of a posterior, as prediction makes them."""

from torch import Tensor

from models.inference.bbb import BBBState
from models.networks import Network
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.local import DEFAULT_MEMORY_BYTES
from models.prediction.weight_draws import FittedDraws


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
