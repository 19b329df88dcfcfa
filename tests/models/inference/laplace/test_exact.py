"""Where the posterior is known, the Laplace approximation is that posterior."""

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import BayesianRidge
from torch import Tensor
from torch.func import jacrev

from models.artifact.states import check_state
from models.config import LaplaceConfig, MLPConfig
from models.exceptions import CorruptArtifact, InvalidData
from models.features.rows import Rows
from models.inference.laplace.evidence import best_sigma, log_evidence
from models.inference.laplace.fit import Approximation, LaplaceFit
from models.inference.laplace.limits import check_size
from models.inference.laplace.state import LaplaceState
from models.inference.point import DrawsState
from models.likelihoods import Bernoulli, Categorical, HomoscedasticGaussian, Likelihood
from models.networks import MLP
from models.prediction.linearised import linearised
from models.prediction.weight_draws import FittedDraws
from models.randomness import generator

ROWS, INPUTS, NOISE = 40, 3, 0.6


def normal(name: str, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(1, name))


X = normal("x", ROWS, INPUTS) @ normal("mix", INPUTS, INPUTS) + 0.5
Y = X @ torch.tensor([1.0, -0.5, 0.2]) + 0.3 + NOISE * normal("noise", ROWS)
DESIGN = torch.cat([X, torch.ones(ROWS, 1)], 1).double()  # of (weights, bias)


def linear(outputs: int = 1) -> MLP:
    return MLP.build(MLPConfig(hidden=()), INPUTS, outputs)


def fit(hessian: str, weights: Tensor, sigma: float | str = 0.8, over: str = "all") -> LaplaceFit:
    """The approximation of the linear model with known noise."""
    config = LaplaceConfig(kind="laplace", over=over, hessian=hessian, prior_sigma=sigma)  # type: ignore[arg-type]
    point = {"log_variance": torch.full((1, 1), 2 * math.log(NOISE))}
    state = DrawsState(weights.float().view(1, -1), point)
    approximation = Approximation(linear(), HomoscedasticGaussian(), config)
    return approximation.fit(state, lambda _: [Rows(X[:15], Y[:15]), Rows(X[15:], Y[15:])])


def posterior(sigma: float) -> tuple[Tensor, Tensor]:
    """Mean and precision of the conjugate posterior."""
    precision = DESIGN.mT @ DESIGN / NOISE**2 + torch.eye(INPUTS + 1).double() / sigma**2
    return torch.linalg.solve(precision, DESIGN.mT @ Y.double() / NOISE**2), precision


def covariance(state: LaplaceState) -> Tensor:
    """The covariance of the draws, from what each standard normal adds."""
    noise = torch.eye(state.num_noise)
    root = (state.draws(noise).weights - state.estimate.weights).double()
    return root.mT @ root


@pytest.mark.parametrize("hessian", ["full", "kron", "diagonal"])
@pytest.mark.parametrize("over", ["all", "last_layer"])
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


def test_alternating_with_the_fit_finds_the_maximum_of_the_evidence() -> None:
    sigma = 1.0
    for _ in range(50):
        (sigma,) = fit("kron", posterior(sigma)[0], "auto").sigmas.values()
    grid = np.linspace(0.95, 1.05, 101) * sigma
    best = grid[int(np.argmax([exact_evidence(float(one)) for one in grid]))]
    assert sigma == pytest.approx(best, rel=2e-3)  # a step of the grid is 0.1 %


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


def test_the_best_sigma_is_the_maximum() -> None:
    values, square = torch.tensor([0.0, 0.3, 5.0, 200.0]).double(), 3.7
    sigma = best_sigma(values, square)
    grid = np.exp(np.linspace(-3, 3, 6001))
    terms = [log_evidence(values, square, float(s) ** -2) for s in grid]
    assert sigma == pytest.approx(grid[int(np.argmax(terms))], rel=1e-3)
    assert log_evidence(values, square, sigma**-2) >= max(terms)


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
    found = Approximation(network, likelihood, config).fit(state, lambda _: [Rows(X, y)])
    hessian = jacrev(jacrev(negative_log_posterior))(weights.double())
    torch.testing.assert_close(
        covariance(found.state), torch.linalg.inv(hessian), rtol=1e-4, atol=1e-7
    )


def test_a_linearised_network_has_the_slopes_of_the_network() -> None:
    """Against central differences, whose error is of second order in the step."""
    network = MLP.build(MLPConfig(hidden=(5, 4), activation="gelu"), INPUTS, 2, skip=True)
    layout = network.layout
    centre = 0.7 * normal("centre", layout.num_weights).double()
    change = normal("change", 6, layout.num_weights).double()
    x, step = X.double(), 1e-5
    found = linearised(network, layout.unflatten(centre), layout.unflatten(centre + change), x)
    at, up, down = (
        network(layout.unflatten((centre + shift * change).contiguous()), x)
        for shift in (0.0, step, -step)
    )
    torch.testing.assert_close(found, at + (up - down) / (2 * step), rtol=1e-6, atol=1e-7)


def test_each_draw_may_have_rows_of_its_own() -> None:
    """As the paths of a forecast do."""
    network = MLP.build(MLPConfig(hidden=(5,)), INPUTS, 2)
    layout = network.layout
    centre, drawn = normal("centre", layout.num_weights), normal("drawn", 3, layout.num_weights)
    x = normal("rows", 3, 4, INPUTS)
    names = layout.unflatten(centre), layout.unflatten(drawn)
    found = linearised(network, *names, x)
    for draw in range(3):
        alone = {name: value[draw : draw + 1] for name, value in names[1].items()}
        torch.testing.assert_close(found[draw], linearised(network, names[0], alone, x[draw])[0])


def test_linearised_predictions_have_the_covariance_of_the_curvature() -> None:
    """J Σ Jᵀ for each row, by 40,000 draws: variances are known to 0.7 %."""
    network = MLP.build(MLPConfig(hidden=(4,), activation="tanh"), INPUTS, 1)
    layout = network.layout
    centre = 0.7 * normal("centre", layout.num_weights)
    config = LaplaceConfig(kind="laplace", over="all", hessian="full", prior_sigma=0.5)
    state = DrawsState(centre.view(1, -1), {"log_variance": torch.zeros(1, 1)})
    fitted = Approximation(network, HomoscedasticGaussian(), config).fit(
        state, lambda _: [Rows(X, Y)]
    )
    outputs, _ = FittedDraws.of(network, fitted.state).outputs(X[:5], 3, 40_000, 2**28)
    j = jacrev(lambda w: network(layout.unflatten(w), X[:5].double())[:, 0])(centre.double())
    wanted = (j @ covariance(fitted.state) @ j.mT).diagonal()
    torch.testing.assert_close(outputs[..., 0].double().var(0), wanted, rtol=0.03, atol=0.0)
    torch.testing.assert_close(
        outputs[..., 0].mean(0), network(layout.unflatten(centre), X[:5])[:, 0], rtol=0, atol=0.02
    )


@pytest.mark.parametrize(
    ("settings", "hidden", "outputs", "path", "message"),
    [
        ({"hessian": "full", "over": "all"}, (100, 100), 2, "/method/hessian", "'kron', or over"),
        ({"hessian": "full"}, (100,), 100, "/method/hessian", "10100 weights is too large"),
        ({"hessian": "kron"}, (10,), 5_000, "/method/hessian", "5000 inputs or outputs"),
    ],
)
def test_what_is_too_large_is_refused(
    settings: dict[str, str], hidden: tuple[int, ...], outputs: int, path: str, message: str
) -> None:
    config = LaplaceConfig(kind="laplace", **settings)  # type: ignore[arg-type]
    with pytest.raises(InvalidData, match=message) as caught:
        check_size(config, MLP.build(MLPConfig(hidden=hidden), 4, outputs))
    assert caught.value.path == path


def test_a_stored_state_must_fit_the_network() -> None:
    state = fit("kron", posterior(0.8)[0]).state
    packed = state.pack()
    check_state(LaplaceState.unpack(packed, 4), linear(), HomoscedasticGaussian())
    for name, value, message in (
        ("block.dense0.start", torch.tensor(1), "covers weights 1 to 5; the network has 4"),
        ("block.dense0.scales", -packed["block.dense0.scales"], "negative"),
        ("block.dense0.left", torch.eye(2), "needs"),
        ("weights", torch.zeros(2, 4), "one weight vector"),
    ):
        wrong = LaplaceState.unpack(packed | {name: value}, 4)
        if name == "weights":
            wrong = LaplaceState.unpack(
                packed | {name: value, "point.log_variance": torch.zeros(2, 1)}, 4
            )
        with pytest.raises(CorruptArtifact, match=message):
            check_state(wrong, linear(), HomoscedasticGaussian())


def test_memory_does_not_grow_with_the_square_of_the_classes() -> None:
    """1,000 classes: 20 drawn targets a row instead of 1,000 roots, in chunks of 64 MiB."""
    network, likelihood = linear(1_000), Categorical(1_000)
    asked: list[int] = []

    def chunks(size: int) -> list[Rows]:
        asked.append(size)
        return [Rows(X, torch.arange(ROWS))]

    config = LaplaceConfig(kind="laplace", hessian="diagonal", prior_sigma=1.0)
    state = DrawsState(torch.zeros(1, network.layout.num_weights), {})
    fit = Approximation(network, likelihood, config).fit(state, chunks)
    assert asked == [2**26 // (8 * (20 * 1_000 + INPUTS + 1))]
    assert len(fit.notes) == 1
    # At equal logits the exact curvature of a class's bias is N p (1 − p).
    scales = fit.state.blocks["dense0"].scales[-1_000:].double()
    curvature = float((scales**-2 - 1).mean())
    assert curvature == pytest.approx(ROWS * 1e-3 * (1 - 1e-3), rel=1e-2)
