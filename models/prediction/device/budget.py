"""The memory that a prediction may take on its device."""

from dataclasses import dataclass

import torch

from models.prediction.local import CACHE_BYTES, DEFAULT_MEMORY_BYTES

# Shares of what is free on a card when a model is first used: other models, the requests' noise and
# the products' own workspaces need the rest.
_ROWS_SHARE, _GRAPHS_SHARE = 8, 16


@dataclass(frozen=True)
class Budget:
    """Bytes of a device.

    Args:
        memory: of the rows that are computed together, with the outputs of all their samples.
        cache: of the buffers between two layers. In a cache they save an access to memory for each
            activation; what fits into it are the rows × samples of one product.
        graphs: of a model's recorded passes.
    """

    memory: int = DEFAULT_MEMORY_BYTES
    cache: int = CACHE_BYTES
    graphs: int = 0

    @classmethod
    def of(cls, device: torch.device) -> "Budget":
        """The budget of a device as it is now; that of a processor is always the same."""
        if device.type != "cuda":
            return cls()
        free, _ = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return cls.of_card(free + unused, torch.cuda.get_device_properties(device).L2_cache_size)

    @classmethod
    def of_card(cls, free: int, cache: int) -> "Budget":
        """The budget of a card with so many free bytes, and so many in its second-level cache.

        It is never below a processor's, so that small cards compute in chunks as small, but not
        smaller: then they run out of memory, which the error says.
        """
        return cls(
            memory=max(DEFAULT_MEMORY_BYTES, free // _ROWS_SHARE),
            cache=max(CACHE_BYTES, cache),
            graphs=free // _GRAPHS_SHARE,
        )
