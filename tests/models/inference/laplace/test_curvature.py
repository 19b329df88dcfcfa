"""The curvature is the generalised Gauss–Newton matrix that brute force gives."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import jacrev

from models.config import ConvolutionalConfig, LaplaceConfig, MLPConfig, PartConfig, RecurrentConfig
from models.features.rows import Rows
from models.features.targets import NumberTarget
from models.inference.laplace.curvature import Diagonal, Full, Kronecker, Spectrum, in_order
from models.inference.laplace.fisher import fisher_roots
from models.inference.laplace.fit import Approximation
from models.inference.laplace.layers import Over, Pass, run, split
from models.inference.point import DrawsState
from models.likelihoods import (
    Bernoulli,
    Categorical,
    HeteroscedasticGaussian,
    HomoscedasticGaussian,
    Likelihood,
    ShapedLikelihood,
)
from models.networks import ACTIVATIONS, MLP, SLOPES, Inputs, Network, build_network
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
def test_the_full_curvature_is_that_of_brute_force(name: str) -> None:
    likelihood = LIKELIHOODS[name]
    network = mlp(likelihood.num_outputs)
    read, roots, vector = of_pass(network, likelihood)
    (member,) = split(network)
    curvature = Full(member.places("all"))
    for part in (slice(0, 7), slice(7, ROWS)):  # in chunks, as for many rows

        def cut(g: Tensor, part: slice = part) -> dict[str, Tensor]:
            whole = torch.zeros_like(roots)
            whole[:, part] = g
            return {k: v[:, part] for k, v in read.gradients(whole).items()}

        inputs = {k: v[part] for k, v in read.inputs.items()}
        curvature.add(Pass(read.outputs[part], inputs, cut), roots[:, part], COUNTS[part])
    wanted = brute_force(network, likelihood, vector)
    (spectrum,) = curvature.spectra().values()
    assert spectrum.left is not None
    found = spectrum.left @ (spectrum.values * spectrum.left.mT)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_diagonal_is_that_of_brute_force(name: str) -> None:
    likelihood = LIKELIHOODS[name]
    network = mlp(likelihood.num_outputs)
    read, roots, vector = of_pass(network, likelihood)
    curvature = Diagonal(split(network)[0].places("all"))
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
    curvature = Kronecker(places)
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


@pytest.mark.parametrize("kind", ["mlp", "skip", "cnn", "gru"])
def test_any_last_layer_is_read(kind: str) -> None:
    """Outputs are linear in the last layer: W a + b gives them, with the a that was read."""
    networks = {
        "mlp": mlp(2, skip=False),
        "skip": mlp(2),
        "cnn": build_network(ConvolutionalConfig(channels=(2,), hidden=(5,)), Inputs.of((4, 4)), 2),
        "gru": build_network(RecurrentConfig(kind="gru", hidden=(3,)), Inputs.of((4, 2)), 2),
    }
    network = networks[kind]
    weights = network.init(noise("init"))
    weights = {name: value + 0.1 for name, value in weights.items()}
    x = torch.randn(7, {"cnn": 16, "gru": 8}.get(kind, 2), generator=noise("rows"))
    read = run(network, weights, x, "last_layer")
    (name,) = read.inputs
    matrix = torch.cat([weights[f"{name}.weight"], weights[f"{name}.bias"][:, None]], 1).double()
    outputs = network(weights, x).double()
    path = x @ weights["skip.weight"].mT if kind == "skip" else 0.0
    torch.testing.assert_close(read.inputs[name] @ matrix.mT + path, outputs, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(read.outputs, outputs)


def test_with_many_classes_the_information_is_drawn() -> None:
    """20 targets for each of 20,000 rows: its elements are known to 1/√400,000 of their size."""
    likelihood, rows = Categorical(25), 20_000
    outputs = torch.randn(1, 25, generator=noise("logits"), dtype=torch.float64)
    roots = fisher_roots(likelihood, outputs.expand(rows, -1), {}, noise("drawn"))
    found = torch.einsum("rnk,rnl->kl", roots, roots) / rows
    probs = outputs[0].softmax(0)
    wanted = probs.diag() - torch.outer(probs, probs)
    assert roots.shape == (20, rows, 25)
    assert (found - wanted).abs().max() < 5 * math.sqrt(float(probs.max()) / (20 * rows))


@pytest.mark.parametrize("family", ["normal", "student", "logistic"])
def test_the_information_of_a_shape_is_drawn_from_it(family: str) -> None:
    """For a location without bounds in sight it is I/s²: 1, 1/3, and (ν + 1)/(ν + 3)."""
    target = NumberTarget(mean=0.0, std=1.0, z_range=(-50.0, 50.0))
    likelihood = ShapedLikelihood(target, family)  # type: ignore[arg-type]
    point = {"dof": torch.tensor(0.0, dtype=torch.float64)} if family == "student" else {}
    outputs = torch.zeros(5_000, 2, dtype=torch.float64)
    roots = fisher_roots(likelihood, outputs, point, noise("shape"))
    found = float(torch.einsum("rn->", roots[..., 0].square())) / 5_000
    scale = float(likelihood.parts(outputs, point).log_scales[0].exp())
    dof = math.sqrt(2.1 * 100)
    exact = {"normal": 1.0, "logistic": 1 / 3, "student": (dof + 1) / (dof + 3)}[family]
    assert found * scale**2 == pytest.approx(exact, rel=0.03)  # 100,000 draws: 0.5 % or less


def test_slopes_are_the_derivatives_of_the_activations() -> None:
    z = torch.linspace(-6, 6, 100, dtype=torch.float64, requires_grad=True)
    for name, activation in ACTIVATIONS.items():
        (wanted,) = torch.autograd.grad(activation(z).sum(), z)
        torch.testing.assert_close(SLOPES[name](z.detach()), wanted)


@pytest.mark.parametrize("hessian_form", ["kron", "diagonal", "full"])
@pytest.mark.parametrize("over", ["last_layer", "all"])
def test_a_row_of_weight_two_is_two_rows_and_one_of_weight_zero_none(
    hessian_form: str, over: str
) -> None:
    network, likelihood = mlp(2), HeteroscedasticGaussian()
    config = LaplaceConfig(kind="laplace", over=over, hessian=hessian_form)  # type: ignore[arg-type]
    estimate = DrawsState(normal("w", 1, network.layout.num_weights).float(), {})
    x, y = X.float(), normal("y", ROWS).float()
    counts = torch.arange(ROWS) % 3
    index = torch.arange(ROWS).repeat_interleave(counts)
    weighted, repeated = Rows(x, y, counts.float()), Rows(x[index], y[index])
    fits = [
        Approximation(network, likelihood, config).fit(estimate, lambda _, r=rows: [r])
        for rows in (weighted, repeated)
    ]
    assert fits[0].log_marginal_likelihood == pytest.approx(fits[1].log_marginal_likelihood)
    assert fits[0].sigmas == pytest.approx(fits[1].sigmas)
    for one, other in zip(*(fit.state.blocks.values() for fit in fits), strict=True):
        torch.testing.assert_close(one.scales, other.scales)


def test_members_are_approximated_apart() -> None:
    """Each member's blocks are those that it has alone."""
    config = MLPConfig(parts=(PartConfig(members=2, hidden=(3,), skip=True),))
    network = build_network(config, Inputs(2), 1)
    alone = MLP.build(MLPConfig(hidden=(3,)), 2, 1, skip=True)
    weights = normal("w", 1, network.layout.num_weights).float()
    point = normal("log variance", 1, 2, 1).float()
    rows = Rows(X.float(), normal("y", ROWS).float())
    wanted = LaplaceConfig(kind="laplace", over="all")
    state = DrawsState(weights, {"log_variance": point}, 2)
    fit = Approximation(network, HomoscedasticGaussian(), wanted).fit(state, lambda _: [rows])
    size = alone.layout.num_weights
    total = 0.0
    for member in range(2):
        own = weights[:, member * size : (member + 1) * size]
        single = DrawsState(own, {"log_variance": point[:, member]})
        one = Approximation(alone, HomoscedasticGaussian(), wanted).fit(single, lambda _: [rows])
        total += one.log_marginal_likelihood
        for name, block in one.state.blocks.items():
            found = fit.state.blocks[f"member{member}.{name}"]
            assert found.start == block.start + member * size
            torch.testing.assert_close(found.scales, block.scales)
    assert fit.log_marginal_likelihood == pytest.approx(total)
