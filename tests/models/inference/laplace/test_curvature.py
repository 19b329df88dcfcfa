"""The curvature is the generalised Gauss–Newton matrix that brute force gives."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import jacrev

from models.config import MLPConfig
from models.inference.curvature import (
    Curvature,
    Over,
    Pass,
    Spectrum,
    fisher_roots,
    in_order,
    run,
    split,
)
from models.likelihoods import (
    Bernoulli,
    Categorical,
    HeteroscedasticGaussian,
    HomoscedasticGaussian,
    Likelihood,
)
from models.networks import MLP, Network
from models.randomness import generator

ROWS = 30


def second(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The matrix of second derivatives."""
    return jacrev(jacrev(function))


def noise(name: str) -> torch.Generator:
    return generator(0, name)


def mlp(outputs: int, *, skip: bool = True) -> MLP:
    return MLP.build(MLPConfig(hidden=(4, 3), activation="tanh"), 2, outputs, skip=skip)


def normal(name: str, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=noise(name), dtype=torch.float64)


X, COUNTS = normal("x", ROWS, 2), normal("counts", ROWS).square()


def of_pass(
    network: Network, likelihood: Likelihood, over: Over = "all"
) -> tuple[Pass, Tensor, Tensor]:
    """A pass over the rows at random weights, its Fisher roots, and the weights."""
    vector = 0.7 * normal("w", network.layout.num_weights)
    read = run(network, network.layout.unflatten(vector), X, over)
    point = {"log_variance": torch.tensor(-1.3, dtype=torch.float64)}
    return read, fisher_roots(likelihood, read.outputs, point, noise("fisher")), vector


def brute_force(network: Network, likelihood: Likelihood, vector: Tensor) -> Tensor:
    """Σ c J ᵀ F J from Jacobians of the whole network, F from second derivatives of log P."""

    def outputs(w: Tensor) -> Tensor:
        return network(network.layout.unflatten(w), X)

    jacobians = jacrev(outputs)(vector)  # rows × outputs × weights
    information = fisher_by_hessian(likelihood, outputs(vector))
    weighted = COUNTS[:, None, None] * information
    return torch.einsum("nka,nkl,nlb->ab", jacobians, weighted, jacobians)


def fisher_by_hessian(likelihood: Likelihood, outputs: Tensor) -> Tensor:
    """−E[∂² log P(y | f)/∂f²]: for classes a sum over them, for Gaussians known moments of y."""
    point = {"log_variance": torch.tensor(-1.3, dtype=torch.float64)}
    found = []
    for row in outputs:
        if isinstance(likelihood, Categorical | Bernoulli):
            probs = likelihood.logits(row[None]).softmax(-1)[0]
            cases = [(p, torch.tensor([i])) for i, p in enumerate(probs)]
        else:
            mean, variance = likelihood.moments(row[None], point)  # type: ignore[attr-defined]
            spread = variance.sqrt()  # two points with the moments that −∂² log P is linear in
            cases = [(torch.tensor(0.5), mean + spread), (torch.tensor(0.5), mean - spread)]
        total = 0
        for p, y in cases:
            total = total - p * second(lambda f, y=y: likelihood.log_prob(f[None], y, point)[0])(
                row
            )
        found.append(total)
    return torch.stack(found)  # type: ignore[arg-type]


def dense(spectrum: Spectrum) -> Tensor:
    """H as a matrix in the order of the weight vector, from what a block is drawn with."""
    block = spectrum.block(1.0)
    eye = torch.eye(spectrum.values.numel())
    root = block.deviations(eye).double()  # covariance = rootᵀ root
    return torch.linalg.inv(root.mT @ root) - eye


LIKELIHOODS: dict[str, Likelihood] = {
    "heteroscedastic": HeteroscedasticGaussian(),
    "homoscedastic": HomoscedasticGaussian(),
    "categorical": Categorical(3),
    "bernoulli": Bernoulli(),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_full_curvature_of_the_last_layer_is_that_of_brute_force(name: str) -> None:
    likelihood = LIKELIHOODS[name]
    network = mlp(likelihood.num_outputs)
    read, roots, vector = of_pass(network, likelihood, "last_layer")
    (member,) = split(network)
    places = member.places("last_layer")
    curvature = Curvature("full", places)
    for part in (slice(0, 7), slice(7, ROWS)):  # in chunks, as for many rows
        inputs = {k: v[part] for k, v in read.inputs.items()}
        chunk = Pass(read.outputs[part], inputs, read.gradients)
        curvature.add(chunk, roots[:, part], COUNTS[part])
    ((place,),) = [places.values()]
    own = slice(place.start, place.stop)
    (spectrum,) = curvature.spectra().values()
    assert spectrum.left is not None
    found = spectrum.left @ (spectrum.values * spectrum.left.mT)
    torch.testing.assert_close(found, brute_force(network, likelihood, vector)[own, own])


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_diagonal_is_that_of_brute_force(name: str) -> None:
    likelihood = LIKELIHOODS[name]
    network = mlp(likelihood.num_outputs)
    read, roots, vector = of_pass(network, likelihood)
    curvature = Curvature("diagonal", split(network)[0].places("all"))
    curvature.add(read, roots, COUNTS)
    wanted = brute_force(network, likelihood, vector).diagonal()
    for spectrum in curvature.spectra().values():
        own = wanted[spectrum.start : spectrum.stop]
        torch.testing.assert_close(spectrum.values[:, 0], own)


def test_kronecker_factors_are_sums_over_the_rows() -> None:
    """Against the definition, layer by layer, from gradients by autograd."""
    network, likelihood = mlp(2), HeteroscedasticGaussian()
    read, roots, vector = of_pass(network, likelihood)
    places = split(network)[0].places("all")
    curvature = Curvature("kron", places)
    curvature.add(read, roots, COUNTS)
    jacobians = jacrev(lambda w: network(network.layout.unflatten(w), X))(vector)
    for name, spectrum in curvature.spectra().items():
        place = places[name]
        own = jacobians[:, :, place.start : place.stop]
        size = place.layer.in_features * place.layer.out_features
        matrix = own[..., :size].unflatten(-1, (place.layer.out_features, -1))
        if place.layer.biased:
            g = own[..., size:]  # ∂f/∂b is the gradient in the layer's outputs
        else:  # of the linear path, whose outputs are the network's
            g = torch.eye(2, dtype=torch.float64).expand(ROWS, 2, 2)
        a = torch.einsum("nkoi,nko->nki", matrix, g) / g.square().sum(-1, keepdim=True)
        a = a[:, 0]
        a = torch.cat([a, torch.ones(ROWS, 1).double()], 1) if place.layer.biased else a
        information = fisher_by_hessian(likelihood, read.outputs)
        outer = torch.einsum("n,nko,nkl,nlp->op", COUNTS, g, information, g)
        inputs = (a * COUNTS[:, None]).mT @ a
        wanted = torch.kron(outer / COUNTS.sum(), inputs)
        # The position in the vector of each weight of the matrix (outputs, inputs and bias).
        numbers = torch.arange(len(wanted)).view(place.shape).float()
        order = in_order(numbers, place).long()
        # The covariance is in float32: its inverse loses digits with the largest eigenvalue.
        scale = float(wanted.abs().max())
        torch.testing.assert_close(
            dense(spectrum), wanted[order][:, order], rtol=1e-3, atol=1e-4 * scale
        )
