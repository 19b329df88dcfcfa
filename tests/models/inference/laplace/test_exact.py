"""Where the posterior is known, the Laplace approximation is that posterior."""

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import BayesianRidge
from torch import Tensor
from torch.func import jacrev

from models.config import LaplaceConfig, MLPConfig
from models.features.rows import Rows
from models.inference.laplace import Laplace, LaplaceFit, LaplaceState, best_sigma
from models.inference.point import DrawsState
from models.likelihoods import Bernoulli, Categorical, HomoscedasticGaussian, Likelihood
from models.networks import MLP
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
) -> LaplaceFit:
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
    found = fit(hessian, mean).log_marginal_likelihood
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
