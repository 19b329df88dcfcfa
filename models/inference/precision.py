"""The number format of a network's products while it is fitted: float32, or mixed precision.

In mixed precision the products take inputs and weights that are rounded to bfloat16 (eight
significant bits, the exponents of float32), which tensor cores multiply eight times as fast. All
that is summed over rows or steps stays in float32: the parameters and the optimiser's slots, the
drawn noise, the likelihood and the KL. bfloat16 has the range of float32, so that no gradient
underflows and the loss needs no scaling.
Source: Kalamkar et al. 2019 (arXiv 1905.12322).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from models.config import Precision
from models.networks import Network

# Weights of a layer, 256 × 256, and rows of a mini-batch: where one of them is smaller, a card's
# time goes into starting the operations, and rounding adds some. Not measured on a card.
_LARGE, _ROWS = 2**16, 64


@dataclass(frozen=True)
class Products:
    """How a method evaluates its network in training.

    Args:
        device: the type of device, "cpu" or "cuda".
        rounded: whether products are of bfloat16 numbers.
    """

    device: str = "cpu"
    rounded: bool = False

    def __call__(self, network: Callable[..., Tensor], *arguments: Any) -> Tensor:
        """Return the network's outputs, in the parameters' own format in any case."""
        if not self.rounded:
            return network(*arguments)
        with self._autocast():
            outputs = network(*arguments)
        return outputs.float() if outputs.dtype == torch.bfloat16 else outputs

    def advance(self, network: Callable[..., Any], *arguments: Any) -> Any:
        """Return a recurrent network's outputs and its states by layer, likewise."""
        if not self.rounded:
            return network(*arguments)
        with self._autocast():
            outputs, states = network(*arguments)
        return outputs.float(), tuple(tuple(part.float() for part in layer) for layer in states)

    def _autocast(self) -> torch.autocast:
        # The weights of a step are new tensors, so that a cache of rounded ones would never hit.
        return torch.autocast(self.device, torch.bfloat16, cache_enabled=False)


EXACT = Products()


def choose_products(
    precision: Precision, network: Network, rows: int, device: torch.device
) -> Products:
    """Return the format that a training asks for.

    "auto" is bfloat16 on a card that has units for it, for layers of 65,536 weights and batches of
    64 rows and more, and float32 elsewhere: so trainings on a processor stay as they are.

    Args:
        rows: of a mini-batch.
    """
    match precision:
        case "float32":
            rounded = False
        case "bfloat16":
            rounded = True
        case _:
            is_card = device.type == "cuda"  # that multiplies such numbers itself
            has_units = is_card and torch.cuda.is_bf16_supported(including_emulation=False)
            rounded = has_units and is_large(network, rows)
    return Products(device.type, rounded)


def is_large(network: Network, rows: int) -> bool:
    """Whether the products take most of a step's time."""
    shapes = [shape for layer in network.layers for shape in layer.shapes().values()]
    sizes = [torch.Size(shape).numel() for shape in shapes]
    return rows >= _ROWS and max(sizes, default=0) >= _LARGE


def notes_on_products(products: Products) -> tuple[str, ...]:
    """What a version says of the format it was fitted in, if it is not the usual one."""
    if not products.rounded:
        return ()
    where = f"fitted on {products.device} in mixed precision"
    return (f"{where}: products of bfloat16 numbers, all else in float32 (training.precision)",)
