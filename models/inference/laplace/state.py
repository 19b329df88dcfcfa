"""The Gaussian around a fit, in the basis in which it is independent."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from models.inference.point import DrawsState
from models.tensors import TensorRecord


@dataclass(frozen=True)
class Block(TensorRecord):
    """The deviations of some consecutive weights: matrices L (S ∘ Z) Rᵀ with standard normals Z.

    With Kronecker factors a matrix is a layer's, its last column the biases (`biased`). Otherwise
    it has one column, which is a slice of the weight vector. L or R of None is the identity.

    Args:
        start: the first weight of the block in the vector.
        scales: S, standard deviations in the basis.
        left, right: L [rows, rows] and R [columns, columns], orthogonal.
    """

    start: int
    biased: bool
    scales: Float[Tensor, "rows columns"]
    left: Float[Tensor, "_ _"] | None
    right: Float[Tensor, "_ _"] | None

    @property
    def stop(self) -> int:
        return self.start + self.scales.numel()

    def deviations(self, noise: Float[Tensor, "draws size"]) -> Float[Tensor, "draws size"]:
        """Return the deviations from the fit, in the order of the weight vector."""
        drawn = noise.unflatten(1, self.scales.shape) * self.scales
        if self.left is not None:
            drawn = self.left @ drawn
        if self.right is not None:
            drawn = drawn @ self.right.mT
        if not self.biased:
            return drawn.flatten(1)
        return torch.cat([drawn[..., :-1].flatten(1), drawn[..., -1]], dim=1)

    def pack(self) -> dict[str, Tensor]:
        packed = {"start": torch.tensor(self.start), "biased": torch.tensor(int(self.biased))}
        named = {"scales": self.scales, "left": self.left, "right": self.right}
        return packed | {k: v.detach().cpu() for k, v in named.items() if v is not None}

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor]) -> "Block":
        given = (tensors.get(name) for name in ("left", "right"))
        start, biased = int(tensors["start"]), bool(tensors["biased"])
        return cls(start, biased, tensors["scales"], *given)


@dataclass(frozen=True)
class LaplaceState(TensorRecord):
    """A fit, and the Gaussian around it. Weights outside of all blocks are as fitted.

    Args:
        blocks: by the names of their layers, in the order of the weight vector.
        linearised: whether the network is linear in the weights around the fit when it predicts.
    """

    estimate: DrawsState
    blocks: dict[str, Block]
    linearised: bool = False

    @property
    def num_weights(self) -> int:
        return self.estimate.num_weights

    @property
    def num_draws(self) -> int | None:
        return None

    def parameters(self) -> list[Tensor]:
        return self.estimate.parameters()

    def tensors(self) -> list[Tensor]:
        found = [
            v for block in self.blocks.values() for v in (block.scales, block.left, block.right)
        ]
        return [*self.parameters(), *(v for v in found if v is not None)]

    def pack(self) -> dict[str, Tensor]:
        packed = {"linearised": torch.tensor(int(self.linearised)), **self.estimate.pack()}
        for name, block in self.blocks.items():
            packed |= {f"block.{name}.{key}": value for key, value in block.pack().items()}
        return packed

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "LaplaceState":
        blocks: dict[str, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("block."):
                name, field = key.removeprefix("block.").rsplit(".", 1)
                blocks.setdefault(name, {})[field] = value
        estimate = DrawsState.unpack(tensors, num_weights)
        read = [(name, Block.unpack(own)) for name, own in blocks.items()]
        in_order = sorted(read, key=lambda item: item[1].start)  # of the noise that they take
        return cls(estimate, dict(in_order), bool(tensors["linearised"]))

    @property
    def num_noise(self) -> int:
        return sum(block.scales.numel() for block in self.blocks.values())

    def draws(self, noise: Float[Tensor, "draws noise"]) -> DrawsState:
        """Return weight vectors from standard normals; point parameters are those of the fit."""
        fitted, count = self.estimate, len(noise)
        weights = fitted.weights.detach().expand(count, -1).clone()
        blocks = list(self.blocks.values())
        own = noise.to(weights).split([block.scales.numel() for block in blocks], dim=1)
        for block, part in zip(blocks, own, strict=True):
            weights[:, block.start : block.stop] += block.deviations(part)
        point = {k: v.detach().expand(count, *v.shape[1:]) for k, v in fitted.point.items()}
        return replace(fitted, weights=weights, point=point)
