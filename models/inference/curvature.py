"""The curvature of the log likelihood in the weights of dense layers, for Laplace approximations.

For a layer z = W a + b the derivatives of a function of the outputs in (W, b) are g (a, 1)ᵀ with g
its gradient in z. All forms of H need only the pairs (a, 1) and g of each row. With the derivatives
J_i of the outputs of row i in the weights and F_i the Fisher information in the outputs

    F = E_{y ~ P(y | f)}[s sᵀ] = Σ_k r_k r_kᵀ,  s = ∂ log P(y | f)/∂f,

sums over the rows, with their weights c_i, give H and its eigenvalues:

    full      Σ_i c_i J_iᵀ F_i J_i, of the last layer
    diagonal  the diagonal of it, exactly
    kron      (Σ_i c_i a_i a_iᵀ) ⊗ (Σ_i c_i g_i g_iᵀ) / Σ_i c_i, of each layer

The Kronecker product is exact if g_i g_iᵀ is the same for all rows, as in a linear network with
constant noise. Gaussians and up to `MOST` classes have F in closed form. For other likelihoods it
is the mean over `MOST` targets that are drawn from the model, which needs no more memory with more
classes. (With the observed targets it would be no Fisher information: Kunstner et al. 2019, arXiv
1905.12558.)
Source: Ritter et al. 2018 (a scalable Laplace approximation), §3; Martens and Grosse 2015 (arXiv
1503.05671).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from models.layers.dense import Dense, add_to_last
from models.likelihoods import (
    Bernoulli,
    Categorical,
    HeteroscedasticGaussian,
    HomoscedasticGaussian,
    Likelihood,
    ShapedLikelihood,
)
from models.likelihoods.likelihood import MAX_LOG_VARIANCE, MIN_LOG_VARIANCE
from models.likelihoods.shaped import draw_targets
from models.networks import ACTIVATIONS, MLP, SLOPES, Network, Stack
from models.posteriors.layout import Layout, Weights
from models.tensors import TensorRecord

MOST = 20

Over = Literal["last_layer", "all"]
Outputs = Float[Tensor, "rows outputs"]
Roots = Float[Tensor, "roots rows outputs"]
RowWeights = Float[Tensor, "rows"]
LayerInputs = Float[Tensor, "rows _"]
Sums = dict[str, Tensor]
Gradients = Callable[[Roots], dict[str, Tensor]]


@dataclass(frozen=True)
class Place:
    """The position of a layer's weight matrix, followed by its biases, in the weight vector."""

    start: int
    layer: Dense

    @property
    def shape(self) -> tuple[int, int]:
        """Outputs, and inputs with the constant one of the biases."""
        return self.layer.out_features, self.layer.in_features + 1

    @property
    def stop(self) -> int:
        return self.start + self.shape[0] * self.shape[1]


@dataclass(frozen=True)
class Member:
    """One network of a model: its number, its weights in the vector, and the inputs it reads."""

    number: int
    network: Network
    start: int
    read: Callable[[Tensor], Tensor]

    @property
    def layout(self) -> Layout:
        return self.network.layout

    def weights(self, vector: Float[Tensor, "weights"]) -> Weights:
        """The named tensors of this network."""
        return self.layout.unflatten(vector[self.start : self.start + self.layout.num_weights])

    def places(self, over: Over) -> dict[str, Place]:
        """The layers of the approximation by name, in the order of the vector."""
        places, start = {}, self.start
        for layer in self.network.layers:
            if isinstance(layer, Dense):
                places[layer.name] = Place(start, layer)
            start += sum(Layout(layer.shapes()).sizes)
        return places if over == "all" else dict([list(places.items())[-1]])


def split(network: Network) -> list[Member]:
    """The networks that a model consists of."""
    if not isinstance(network, Stack):
        return [Member(0, network, 0, lambda x: x)]
    members, start = [], 0
    reads = [part.read for part in network.parts for _ in range(part.count)]
    for number, (member, read) in enumerate(zip(network.networks, reads, strict=True)):
        members.append(Member(number, member, start, read))
        start += member.layout.num_weights
    return members


@dataclass(frozen=True)
class Pass:
    """A forward pass in float64.

    Args:
        inputs: of each layer by name, [rows, inputs], with a last column of ones for the biases.
        gradients: in the outputs of each layer, [roots, rows, units], from those in the network's.
    """

    outputs: Outputs
    inputs: Mapping[str, LayerInputs]
    gradients: Gradients


def run(network: Network, weights: Weights, x: Float[Tensor, "rows inputs"], over: Over) -> Pass:
    """Run the network, and keep what the layers of the approximation need."""
    if over == "last_layer":
        return _last_layer(network, weights, x)
    assert isinstance(network, MLP)  # as `Laplace.check` demands
    return _all_layers(network, {k: v.double() for k, v in weights.items()}, x.double())


def _last_layer(network: Network, weights: Weights, x: Float[Tensor, "rows inputs"]) -> Pass:
    """With the identity as its last matrix, a network returns what its last layer reads."""
    last = network.layers[-1]
    assert isinstance(last, Dense)
    outputs = network(weights, x).double()
    bare = replace(network, path=None) if isinstance(network, MLP) else network
    identity = torch.eye(last.in_features).to(x)
    through = {last.weight: identity, last.bias: identity.new_zeros(last.in_features)}
    read = bare({**weights, **through}, x).double()
    return Pass(outputs, {last.name: _with_one(read)}, lambda g: {last.name: g})


def _all_layers(network: MLP, weights: Weights, x: Float[Tensor, "rows inputs"]) -> Pass:
    inputs, slopes, y = {}, [], x
    for layer in network.dense[:-1]:
        inputs[layer.name] = _with_one(y)
        z = layer(weights, y)
        y = ACTIVATIONS[network.activation](z)
        slopes.append(SLOPES[network.activation](z))
    last = network.dense[-1]
    inputs[last.name] = _with_one(y)
    outputs = last(weights, y)
    if network.path is not None:
        inputs[network.path.name] = _with_one(x)
        outputs = add_to_last(outputs, network.path(weights, x))

    def gradients(roots: Roots) -> dict[str, Tensor]:
        by_layer, g = {last.name: roots}, roots
        if network.path is not None:
            by_layer[network.path.name] = roots[..., -network.path.out_features :]
        for i in range(len(slopes), 0, -1):
            g = (g @ weights[network.dense[i].weight]) * slopes[i - 1]
            by_layer[network.dense[i - 1].name] = g
        return by_layer

    return Pass(outputs, inputs, gradients)


def _with_one(a: Float[Tensor, "rows inputs"]) -> LayerInputs:
    return torch.cat([a, a.new_ones(len(a), 1)], dim=1)


def is_exact(likelihood: Likelihood) -> bool:
    """Whether the information is in closed form, not a mean over drawn targets."""
    match likelihood:
        case Categorical():
            return likelihood.num_classes <= MOST
        case ShapedLikelihood():
            return False
    return True


def count_roots(likelihood: Likelihood) -> int:
    """The number of vectors r_k."""
    return likelihood.num_outputs if is_exact(likelihood) else MOST


def fisher_roots(
    likelihood: Likelihood, outputs: Outputs, point: dict[str, Tensor], noise: Generator
) -> Roots:
    """Return r_k for each row."""
    match likelihood:
        case HomoscedasticGaussian() | HeteroscedasticGaussian():
            return _of_gaussian(likelihood, outputs, point)
        case Bernoulli():
            return (torch.sigmoid(outputs) * torch.sigmoid(-outputs)).sqrt().unsqueeze(0)
        case Categorical() if is_exact(likelihood):
            probs = outputs.softmax(-1)  # diag(p) − p pᵀ = R Rᵀ with R = diag(√p) − p √pᵀ
            root = probs.sqrt()
            factor = torch.diag_embed(root) - probs.unsqueeze(2) * root.unsqueeze(1)
            return factor.movedim(2, 0)
    scores = [_score(likelihood, outputs, point, noise) for _ in range(MOST)]
    return torch.stack(scores) / math.sqrt(MOST)


def _of_gaussian(
    likelihood: HomoscedasticGaussian | HeteroscedasticGaussian,
    outputs: Outputs,
    point: dict[str, Tensor],
) -> Roots:
    """diag(1/s², ½) for a mean and a log-variance, which has no effect beyond its bounds."""
    _, variance = likelihood.moments(outputs, point)
    roots = outputs.new_zeros(outputs.shape[1], *outputs.shape)
    roots[0, :, 0] = variance.rsqrt()
    if isinstance(likelihood, HeteroscedasticGaussian):
        log_variance = outputs[:, 1]
        free = (log_variance > MIN_LOG_VARIANCE) & (log_variance < MAX_LOG_VARIANCE)
        roots[1, :, 1] = free * math.sqrt(0.5)
    return roots


def _score(
    likelihood: Likelihood, outputs: Outputs, point: dict[str, Tensor], noise: Generator
) -> Outputs:
    """s for a drawn target of each row."""
    if isinstance(likelihood, Categorical):
        probs = outputs.softmax(-1)
        drawn = torch.multinomial(probs, 1, generator=noise)[:, 0]
        return torch.nn.functional.one_hot(drawn, likelihood.num_classes) - probs
    assert isinstance(likelihood, ShapedLikelihood)
    with torch.enable_grad():
        free = outputs.detach().requires_grad_()
        targets = draw_targets(likelihood, outputs, noise)
        total = likelihood.log_prob(free, targets, point).sum()
        return torch.autograd.grad(total, free)[0]


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

    def named(self) -> dict[str, Tensor]:
        """The matrices that are not the identity."""
        named = {"scales": self.scales, "left": self.left, "right": self.right}
        return {name: matrix for name, matrix in named.items() if matrix is not None}

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor]) -> "Block":
        given = (tensors.get(name) for name in ("left", "right"))
        start, biased = int(tensors["start"]), bool(tensors["biased"])
        return cls(start, biased, tensors["scales"], *given)


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of H for the weights of some layers; see `Block`."""

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


class Curvature:
    """Sums over rows that are added chunk by chunk.

    Args:
        hessian: "kron" has two factors for each layer, "diagonal" a number for each weight, and
            "full" one matrix for the weights of a single layer.
    """

    def __init__(self, hessian: str, places: Mapping[str, Place]) -> None:
        self._terms, self._places = _TERMS[hessian], places
        self._sums: dict[str, Sums] = {name: {} for name in places}

    def add(self, read: Pass, roots: Roots, weights: RowWeights) -> None:
        gradients = read.gradients(roots)
        for name, sums in self._sums.items():
            for key, value in self._terms(read.inputs[name], gradients[name], weights).items():
                sums[key] = sums[key] + value if key in sums else value

    def spectra(self) -> dict[str, Spectrum]:
        """The spectra of blocks that are independent of each other, by name."""
        spectra = {}
        for name, place in self._places.items():
            match self._sums[name]:
                case {"inputs": inputs, "outputs": outputs, "rows": rows}:
                    of_inputs, right = _eigen(inputs)
                    of_outputs, left = _eigen(outputs / rows)
                    values = torch.outer(of_outputs, of_inputs)
                    spectra[name] = Spectrum(place.start, True, values, left, right)
                case {"squares": squares}:
                    values = in_order(squares).unsqueeze(1)
                    spectra[name] = Spectrum(place.start, False, values)
                case {"products": products}:
                    values, vectors = _eigen(products)
                    spectra["all"] = Spectrum(place.start, False, values.unsqueeze(1), vectors)
        return spectra


def _kron(a: LayerInputs, g: Roots, weights: RowWeights) -> Sums:
    flat, repeated = g.flatten(0, 1), weights.repeat(len(g)).unsqueeze(1)
    return {
        "inputs": (a * weights.unsqueeze(1)).mT @ a,
        "outputs": (flat * repeated).mT @ flat,
        "rows": weights.sum(),
    }


def _diagonal(a: LayerInputs, g: Roots, weights: RowWeights) -> Sums:
    return {"squares": (g.square().sum(0) * weights.unsqueeze(1)).mT @ a.square()}


def _full(a: LayerInputs, g: Roots, weights: RowWeights) -> Sums:
    j = in_order((g.unsqueeze(3) * a.unsqueeze(1)).flatten(0, 1))
    j = j * weights.sqrt().repeat(len(g)).unsqueeze(1)
    return {"products": j.mT @ j}


_TERMS: Mapping[str, Callable[[LayerInputs, Roots, RowWeights], Sums]] = {
    "kron": _kron,
    "diagonal": _diagonal,
    "full": _full,
}


def in_order(matrix: Float[Tensor, "*rows outputs columns"]) -> Float[Tensor, "*rows size"]:
    """Flatten to the order of the weight vector: the weights, then the biases."""
    return torch.cat([matrix[..., :-1].flatten(-2), matrix[..., -1]], dim=-1)


def _eigen(matrix: Float[Tensor, "n n"]) -> tuple[Tensor, Tensor]:
    """Eigenvalues, none below 0 by rounding, and eigenvectors."""
    values, vectors = torch.linalg.eigh(matrix)
    return values.clamp_min(0.0), vectors
