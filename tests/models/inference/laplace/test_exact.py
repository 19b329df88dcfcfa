"""Laplace's approximation: exact where it can be, its curvature beside brute force."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.linear_model import BayesianRidge
from torch import Tensor
from torch.func import jacrev

from models.config import LaplaceConfig, MLPConfig
from models.features.rows import Rows
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
from models.inference.laplace import Laplace, LaplaceState, best_sigma
from models.inference.method import Finished
from models.inference.point import DrawsState
from models.likelihoods import (
    Bernoulli,
    Categorical,
    HeteroscedasticGaussian,
    HomoscedasticGaussian,
    Likelihood,
)
from models.networks import MLP, Network
from models.prediction.whole_draws import FittedDraws
from models.randomness import generator

ROWS, INPUTS, NOISE = 40, 3, 0.6


def normal(name: str, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(1, name))


X = normal("x", ROWS, INPUTS) @ normal("mix", INPUTS, INPUTS) + 0.5
Y = X @ torch.tensor([1.0, -0.5, 0.2]) + 0.3 + NOISE * normal("noise", ROWS)
DESIGN = torch.cat([X, torch.ones(ROWS, 1)], 1).double()  # of (weights, bias)


def linear(outputs: int = 1) -> MLP:
    return MLP.build(MLPConfig(hidden=()), INPUTS, outputs)


def fit(
    hessian: str, weights: Tensor, sigma: float | str = 0.8, over: str = "last_layer"
) -> Finished:
    """The approximation of the linear model with known noise."""
    config = LaplaceConfig(kind="laplace", over=over, hessian=hessian, prior_sigma=sigma)  # type: ignore[arg-type]
    point = {"log_variance": torch.full((1, 1), 2 * math.log(NOISE))}
    state = DrawsState(weights.float().view(1, -1), point)
    method = Laplace(linear(), HomoscedasticGaussian(), config, ROWS)
    return method.approximate(state, lambda _: [Rows(X[:15], Y[:15]), Rows(X[15:], Y[15:])])


def posterior(sigma: float) -> tuple[Tensor, Tensor]:
    """Mean and precision of the conjugate posterior."""
    precision = DESIGN.mT @ DESIGN / NOISE**2 + torch.eye(INPUTS + 1).double() / sigma**2
    return torch.linalg.solve(precision, DESIGN.mT @ Y.double() / NOISE**2), precision


def covariance(state: LaplaceState) -> Tensor:
    """The covariance of the draws, from what each standard normal adds."""
    noise = torch.eye(state.num_noise)
    root = (state.draws(noise).weights - state.estimate.weights).double()
    return root.mT @ root


@pytest.mark.parametrize(
    ("hessian", "over"), [("full", "last_layer"), ("kron", "all"), ("diagonal", "all")]
)
def test_a_conjugate_posterior_is_exact(hessian: str, over: str) -> None:
    """With constant noise the Kronecker product is exact, too; a diagonal is of the precision."""
    mean, precision = posterior(0.8)
    found = covariance(fit(hessian, mean, over=over).state)
    if hessian == "diagonal":
        precision = precision.diagonal().diag()
    torch.testing.assert_close(found, torch.linalg.inv(precision), rtol=2e-5, atol=1e-8)


def exact_evidence(sigma: float) -> float:
    """log N(y; 0, s²I + σ² Φ Φᵀ)."""
    total = NOISE**2 * torch.eye(ROWS).double() + sigma**2 * DESIGN @ DESIGN.mT
    zero = torch.zeros(ROWS).double()
    return float(torch.distributions.MultivariateNormal(zero, total).log_prob(Y.double()))


@pytest.mark.parametrize("hessian", ["full", "kron"])
def test_the_marginal_likelihood_is_the_closed_form(hessian: str) -> None:
    """Up to the rounding of the weights in float32."""
    mean, _ = posterior(0.8)
    found = fit(hessian, mean).metrics["log_marginal_likelihood"]
    assert found == pytest.approx(exact_evidence(0.8), abs=1e-4)


def test_the_prior_is_that_of_bayesian_ridge() -> None:
    """Which learns the noise as well: it is given to us here."""
    x = (X - X.mean(0)).double().numpy()
    y = (Y - Y.mean()).double().numpy()
    ridge = BayesianRidge(alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-12, max_iter=5_000)
    ridge.fit(x, y)
    gram, noise = torch.from_numpy(x.T @ x), float(ridge.alpha_)
    values = torch.linalg.eigvalsh(gram) * noise
    sigma = best_sigma(values, float(np.square(ridge.coef_).sum()))
    assert sigma**-2 == pytest.approx(float(ridge.lambda_), rel=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_regression_has_the_inverse_hessian(classes: int) -> None:
    """For a linear model of logits the Gauss–Newton matrix is the Hessian, by autograd here."""
    likelihood: Likelihood = Bernoulli() if classes == 2 else Categorical(3)
    network = linear(likelihood.num_outputs)
    y = torch.randint(classes, (ROWS,), generator=generator(0, "classes"))
    weights = 0.5 * normal("w", network.layout.num_weights)

    def negative_log_posterior(w: Tensor) -> Tensor:
        outputs = network(network.layout.unflatten(w), X.double())
        fit = likelihood.log_prob(outputs, y, {}).sum()
        return 0.5 * w.square().sum() / 0.8**2 - fit

    config = LaplaceConfig(kind="laplace", hessian="full", prior_sigma=0.8)
    state = DrawsState(weights.view(1, -1), {})
    found = Laplace(network, likelihood, config, ROWS).approximate(state, lambda _: [Rows(X, y)])
    hessian = jacrev(jacrev(negative_log_posterior))(weights.double())
    torch.testing.assert_close(
        covariance(found.state), torch.linalg.inv(hessian), rtol=1e-4, atol=1e-7
    )


def test_linearised_predictions_have_the_covariance_of_the_curvature() -> None:
    """J Σ Jᵀ for each row, by 40,000 draws: variances are known to 0.7 %."""
    network = MLP.build(MLPConfig(hidden=(4,), activation="tanh"), INPUTS, 1)
    layout = network.layout
    centre = 0.7 * normal("centre", layout.num_weights)
    config = LaplaceConfig(kind="laplace", over="all", prior_sigma=0.5)
    state = DrawsState(centre.view(1, -1), {"log_variance": torch.zeros(1, 1)})
    fitted = Laplace(network, HomoscedasticGaussian(), config, ROWS).approximate(
        state, lambda _: [Rows(X, Y)]
    )
    outputs, _ = FittedDraws.of(network, fitted.state).outputs(X[:5], 3, 40_000, 2**28)
    j = jacrev(lambda w: network(layout.unflatten(w), X[:5].double())[:, 0])(centre.double())
    wanted = (j @ covariance(fitted.state) @ j.mT).diagonal()
    torch.testing.assert_close(outputs[..., 0].double().var(0), wanted, rtol=0.03, atol=0.0)
    torch.testing.assert_close(
        outputs[..., 0].mean(0), network(layout.unflatten(centre), X[:5])[:, 0], rtol=0, atol=0.02
    )


FEW_ROWS = 30


def second(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The matrix of second derivatives."""
    return jacrev(jacrev(function))


def noise(name: str) -> torch.Generator:
    return generator(0, name)


def mlp(outputs: int) -> MLP:
    return MLP.build(MLPConfig(hidden=(4, 3), activation="tanh"), 2, outputs, path_to=1)


def normal_network(name: str, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=noise(name), dtype=torch.float64)


FEW_X, COUNTS = normal_network("x", FEW_ROWS, 2), normal_network("counts", FEW_ROWS).square()


def of_pass(
    network: Network, likelihood: Likelihood, over: Over = "all"
) -> tuple[Pass, Tensor, Tensor]:
    """A pass over the rows at random weights, its Fisher roots, and the weights."""
    vector = 0.7 * normal_network("w", network.layout.num_weights)
    read = run(network, network.layout.unflatten(vector), FEW_X, over)
    point = {"log_variance": torch.tensor(-1.3, dtype=torch.float64)}
    return read, fisher_roots(likelihood, read.outputs, point, noise("fisher")), vector


def brute_force(network: Network, likelihood: Likelihood, vector: Tensor) -> Tensor:
    """Σ c J ᵀ F J from Jacobians of the whole network, F from second derivatives of log P."""

    def outputs(w: Tensor) -> Tensor:
        return network(network.layout.unflatten(w), FEW_X)

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
    for part in (slice(0, 7), slice(7, FEW_ROWS)):  # in chunks, as for many rows
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
    jacobians = jacrev(lambda w: network(network.layout.unflatten(w), FEW_X))(vector)
    for name, spectrum in curvature.spectra().items():
        place = places[name]
        own = jacobians[:, :, place.start : place.stop]
        size = place.layer.in_features * place.layer.out_features
        matrix = own[..., :size].unflatten(-1, (place.layer.out_features, -1))
        g = own[..., size:]  # ∂f/∂b is the gradient in the layer's outputs
        a = torch.einsum("nkoi,nko->nki", matrix, g) / g.square().sum(-1, keepdim=True)
        a = a[:, -1]  # of the output that each layer reaches
        a = torch.cat([a, torch.ones(FEW_ROWS, 1).double()], 1)
        information = fisher_by_hessian(likelihood, read.outputs)
        outer = torch.einsum("n,nko,nkl,nlp->op", COUNTS, g, information, g)
        inputs = (a * COUNTS[:, None]).mT @ a
        wanted = torch.kron(outer / COUNTS.sum(), inputs)
        # The position in the vector of each weight of the matrix (outputs, inputs and bias).
        numbers = torch.arange(len(wanted)).view(place.shape).float()
        order = in_order(numbers).long()
        # The covariance is in float32: its inverse loses digits with the largest eigenvalue.
        scale = float(wanted.abs().max())
        torch.testing.assert_close(
            dense(spectrum), wanted[order][:, order], rtol=1e-3, atol=1e-4 * scale
        )
