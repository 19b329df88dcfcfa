"""The objective is the negative ELBO: −log evidence at the exact posterior, whatever |B|."""

import math

import pytest
import torch

from models.config import BBBConfig, GaussianPriorConfig, KLConfig
from models.features.rows import batches
from models.inference.bbb import BayesByBackprop, BBBState
from models.inference.objectives import kl_weight, negative_elbo, warmup
from models.posteriors.priors import GaussianPrior
from tests.models.conftest import LinearRegression


def _method(problem: LinearRegression, estimator: str) -> BayesByBackprop:
    config = BBBConfig(
        estimator=estimator,  # type: ignore[arg-type]
        prior=GaussianPriorConfig(sigma=problem.prior_sigma),
    )
    return BayesByBackprop.build(
        problem.network,
        problem.likelihood,
        config,
        len(problem.rows),
    )


def test_every_draw_of_the_exact_posterior_gives_the_evidence(
    linear_regression: LinearRegression,
) -> None:
    """−log P(D|w) + log q(w) − log P(w) = −log P(D), for any w, if q is the posterior."""
    problem = linear_regression
    noise = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for eps in noise:
        weights = problem.posterior.distribution().rsample(eps)
        outputs = problem.network(problem.network.layout.unflatten(weights), problem.rows.inputs)
        nll = -problem.likelihood.log_prob(outputs, problem.rows.targets, {}).sum()
        kl = problem.posterior.distribution().log_prob(weights)
        kl = kl - GaussianPrior(problem.prior_sigma).log_prob(weights).sum()
        assert (nll + kl).item() == pytest.approx(-problem.log_evidence, rel=1e-9)


@pytest.mark.parametrize("estimator", ["weight", "local"])
@pytest.mark.parametrize("batch_size", [1, 5, 24])
def test_the_expected_objective_is_the_evidence_for_every_batch_size(
    linear_regression: LinearRegression, estimator: str, batch_size: int
) -> None:
    """Averaged over random mini-batches and noise, within 4 standard errors of −log P(D)/N."""
    problem = linear_regression
    method, state = _method(problem, estimator), BBBState(problem.posterior, {})
    noise = torch.Generator().manual_seed(11)
    values = []
    for _ in range(800):
        index = torch.randperm(len(problem.rows), generator=noise)[:batch_size]
        values.append(method.loss(state, problem.rows[index], 1.0, noise).nelbo)
    nelbo = torch.stack(values)
    error = (nelbo.std() / math.sqrt(len(nelbo))).item()
    expected = -problem.log_evidence / len(problem.rows)
    assert abs(nelbo.mean().item() - expected) < 4 * error


def test_the_mini_batches_of_an_epoch_are_unbiased_though_their_sizes_differ() -> None:
    """25 rows in batches of up to 8 are 7, 6, 6 and 6: their mean over orders is that of all."""
    nll = torch.linspace(-3.0, 5.0, 25).double().exp()
    means = torch.stack(
        [
            torch.stack([negative_elbo(nll[i], nll.new_zeros(()), 25, 1.0).nll for i in parts])
            for parts in (list(batches(25, 8, seed=0, epoch=e)) for e in range(4_000))
        ]
    )
    errors = means.std(0) / math.sqrt(len(means))
    assert ((means.mean(0) - nll.mean()).abs() < 4 * errors).all()


def test_num_data_is_required_and_positive() -> None:
    with pytest.raises(TypeError):
        negative_elbo(torch.zeros(3), torch.zeros(()))  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="num_data"):
        negative_elbo(torch.zeros(3), torch.zeros(()), 0, 1.0)


@pytest.mark.parametrize("num_batches", [1, 2, 7, 5000])
def test_blundell_weights_halve_and_average_to_one(num_batches: int) -> None:
    config = KLConfig(weight="blundell")
    weights = [
        kl_weight(config, batch=i, num_batches=num_batches, num_parameters=10)
        for i in range(num_batches)
    ]
    assert sum(weights) / num_batches == pytest.approx(1.0)
    if num_batches > 1:
        assert weights[0] == pytest.approx(2 * weights[1])
    if num_batches == 7:  # the paper's own form, where 2^M does not overflow
        paper = [7 * 2 ** (7 - i) / (2**7 - 1) for i in range(1, 8)]
        assert weights == pytest.approx(paper)


@pytest.mark.parametrize(
    ("weight", "expected"), [("uniform", 1.0), ("parameters", 1 / 40), (0.0, 0.0), (0.3, 0.3)]
)
def test_other_weights_are_what_they_say(weight: str | float, expected: float) -> None:
    config = KLConfig(weight=weight)  # type: ignore[arg-type]
    assert kl_weight(config, batch=3, num_batches=9, num_parameters=40) == pytest.approx(expected)


def test_warm_up_is_a_ramp_to_one() -> None:
    assert [warmup(step, 4) for step in range(6)] == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])
    assert warmup(0, 0) == 1.0
