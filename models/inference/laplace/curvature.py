"""Sums over the rows for H, and its eigenvalues: full, diagonal or a Kronecker product per layer.

    full      Σ_i c_i J_iᵀ F_i J_i, of the last layer
    diagonal  the diagonal of it, exactly
    kron      (Σ_i c_i a_i a_iᵀ) ⊗ (Σ_i c_i g_i g_iᵀ) / Σ_i c_i, of each layer

with a_i a layer's inputs and g_i the gradients in its outputs (`layers`). The Kronecker product is
exact if g_i g_iᵀ is the same for all rows, as in a linear network with constant noise.
Source: Ritter et al. 2018 (a scalable Laplace approximation), §3; Martens and Grosse 2015 (arXiv
1503.05671).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from models.inference.laplace.layers import Pass, Place
from models.inference.laplace.state import Block

RowWeights = Float[Tensor, "rows"]
Roots = Float[Tensor, "roots rows outputs"]


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of H for the weights of some layers; see `state.Block`."""

    start: int
    biased: bool
    values: Float[Tensor, "rows columns"]
    left: Float[Tensor, "rows rows"] | None = None
    right: Float[Tensor, "columns columns"] | None = None

    @property
    def stop(self) -> int:
        return self.start + self.values.numel()

    def block(self, precision: float) -> Block:
        """The Gaussian with the covariance (H + `precision` · I)⁻¹, in float32."""
        scales = (self.values + precision).rsqrt()
        left, right = (
            None if v is None else v.float().contiguous() for v in (self.left, self.right)
        )
        return Block(self.start, self.biased, scales.float(), left, right)


@runtime_checkable
class Curvature(Protocol):
    """Sums over rows that are added chunk by chunk."""

    def add(self, read: Pass, roots: Roots, weights: RowWeights) -> None: ...

    def spectra(self) -> dict[str, Spectrum]:
        """The spectra of blocks that are independent of each other, by name."""
        ...


class Kronecker:
    """Two factors for each layer."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        self._places, self._total = places, 0.0
        self._inputs: dict[str, Tensor] = {}
        self._outputs: dict[str, Tensor] = {}

    def add(self, read: Pass, roots: Roots, weights: RowWeights) -> None:
        gradients = read.gradients(roots)
        self._total += float(weights.sum())
        for name in self._places:
            a, g = read.inputs[name], gradients[name].flatten(0, 1)
            repeated = weights.repeat(len(roots)).unsqueeze(1)
            self._inputs[name] = self._inputs.get(name, 0) + (a * weights.unsqueeze(1)).mT @ a
            self._outputs[name] = self._outputs.get(name, 0) + (g * repeated).mT @ g

    def spectra(self) -> dict[str, Spectrum]:
        found = {}
        for name, place in self._places.items():
            inputs, right = _eigen(self._inputs[name])
            outputs, left = _eigen(self._outputs[name] / self._total)
            values = torch.outer(outputs, inputs)
            found[name] = Spectrum(place.start, place.layer.biased, values, left, right)
        return found


class Diagonal:
    """A number for each weight."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        self._places = places
        self._sums: dict[str, Tensor] = {}

    def add(self, read: Pass, roots: Roots, weights: RowWeights) -> None:
        gradients = read.gradients(roots)
        for name in self._places:
            squares = gradients[name].square().sum(0) * weights.unsqueeze(1)
            found = squares.mT @ read.inputs[name].square()
            self._sums[name] = self._sums.get(name, 0) + found

    def spectra(self) -> dict[str, Spectrum]:
        return {
            name: Spectrum(place.start, False, in_order(self._sums[name], place).unsqueeze(1))
            for name, place in self._places.items()
        }


class Full:
    """One matrix for the weights of a single layer."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        ((self._name, self._place),) = places.items()
        self._sum: Tensor | None = None

    def add(self, read: Pass, roots: Roots, weights: RowWeights) -> None:
        gradients = read.gradients(roots)[self._name]
        products = gradients.unsqueeze(3) * read.inputs[self._name].unsqueeze(1)
        j = in_order(products.flatten(0, 1), self._place)
        j = j * weights.sqrt().repeat(len(roots)).unsqueeze(1)
        found = j.mT @ j
        self._sum = found if self._sum is None else self._sum + found

    def spectra(self) -> dict[str, Spectrum]:
        assert self._sum is not None
        values, vectors = _eigen(self._sum)
        return {"all": Spectrum(self._place.start, False, values.unsqueeze(1), vectors)}


def in_order(
    matrix: Float[Tensor, "*rows outputs columns"], place: Place
) -> Float[Tensor, "*rows size"]:
    """Flatten to the order of the weight vector: the weights, then the biases."""
    if not place.layer.biased:
        return matrix.flatten(-2)
    return torch.cat([matrix[..., :-1].flatten(-2), matrix[..., -1]], dim=-1)


def values_of(spectra: Sequence[Spectrum]) -> Float[Tensor, "weights"]:
    """All eigenvalues."""
    return torch.cat([spectrum.values.flatten() for spectrum in spectra])


def _eigen(matrix: Float[Tensor, "n n"]) -> tuple[Tensor, Tensor]:
    """Eigenvalues, none below 0 by rounding, and eigenvectors."""
    values, vectors = torch.linalg.eigh(matrix)
    return values.clamp_min(0.0), vectors
