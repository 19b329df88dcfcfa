"""A learned row for each key, and one for keys that training did not have."""

from dataclasses import dataclass

from jaxtyping import Float, Shaped
from torch import Tensor

from models.posteriors.layout import Weights

_FAN_IN = 100  # initial rows have a deviation of 0.1: a series is taken for an average one at first


@dataclass(frozen=True)
class KeyTable:
    """Rows of `width` numbers, the last one for keys that training did not have.

    All rows share one prior: with a learned scale they shrink to what series have in common as far
    as the data do not tell them apart.
    """

    name: str
    num_keys: int
    width: int

    @property
    def weight(self) -> str:
        return f"{self.name}.weight"

    @property
    def fan_in(self) -> int:
        return _FAN_IN

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each tensor, without sample axis."""
        return {self.weight: (self.num_keys + 1, self.width)}

    def __call__(
        self, weights: Weights, numbers: Shaped[Tensor, "*samples batch"]
    ) -> Float[Tensor, "*samples2 batch width"]:
        """The rows of these numbers; a sample's numbers are looked up in that sample's table."""
        table, found = weights[self.weight], numbers.long()
        if found.ndim == 1:
            return table.index_select(-2, found)
        table = table.expand(*found.shape[:-1], -1, -1)
        return table.gather(-2, found.unsqueeze(-1).expand(*found.shape, self.width))
