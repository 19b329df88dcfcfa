"""Likelihoods and the scales of their targets."""

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from torch import distributions

from models.config import LikelihoodConfig, ModelConfig, SupportConfig
from models.exceptions import InvalidData
from models.features.scales import IdentityScale, LogitScale, LogScale, PowerScale, Scale
from models.features.target_shapes import describe_target
from models.features.targets import NumberTarget
from models.likelihoods import (
    Bernoulli,
    Categorical,
    HeteroscedasticGaussian,
    HomoscedasticGaussian,
    build_likelihood,
)
from models.tabular.shape_choice import rank

OUTPUTS = torch.randn(3, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
NUMBERS = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
LABELS = torch.tensor([0, 1, 1, 0, 1])


def test_log_probabilities_are_those_of_torchs_distributions() -> None:
    means, log_variances = OUTPUTS.unbind(-1)
    point = {"log_variance": torch.tensor(0.6, dtype=torch.float64)}
    for found, expected in (
        (
            HeteroscedasticGaussian().log_prob(OUTPUTS, NUMBERS, {}),
            distributions.Normal(means, log_variances.exp().sqrt()).log_prob(NUMBERS),
        ),
        (
            HomoscedasticGaussian().log_prob(OUTPUTS[..., :1], NUMBERS, point),
            distributions.Normal(means, point["log_variance"].exp().sqrt()).log_prob(NUMBERS),
        ),
        (
            Categorical(2).log_prob(OUTPUTS, LABELS, {}),
            distributions.Categorical(logits=OUTPUTS).log_prob(LABELS),
        ),
        (
            Bernoulli().log_prob(OUTPUTS[..., :1], LABELS, {}),
            distributions.Bernoulli(logits=means).log_prob(LABELS.double()),
        ),
    ):
        torch.testing.assert_close(found, expected)
    probs = Bernoulli().logits(OUTPUTS[..., :1]).softmax(-1)
    torch.testing.assert_close(probs[..., 1], torch.sigmoid(means))


@pytest.mark.parametrize("likelihood", [Categorical(2), Bernoulli()])
def test_extreme_logits_stay_finite_with_a_gradient(likelihood: Categorical | Bernoulli) -> None:
    """log(softmax(x)) would be −inf here, and its gradient NaN."""
    outputs = torch.full((1, likelihood.num_outputs), -2000.0)
    outputs[..., 0] = 2000.0 if likelihood.num_outputs == 2 else -2000.0
    outputs.requires_grad_()
    log_prob = likelihood.log_prob(outputs, torch.tensor([1]), {})
    log_prob.sum().backward()
    assert log_prob.item() < -1000
    assert torch.isfinite(log_prob).all()
    assert torch.isfinite(outputs.grad).all()
    assert (outputs.grad != 0).any()


def test_a_far_off_log_variance_cannot_overflow() -> None:
    outputs = torch.tensor([[0.0, 1e6], [0.0, -1e6]])
    mean, variance = HeteroscedasticGaussian().moments(outputs, {})
    assert torch.isfinite(mean).all()
    assert torch.isfinite(variance).all()
    assert (variance > 0).all()


def test_one_class_is_refused() -> None:
    """A softmax over one logit is always 1: the likelihood would be constant."""
    with pytest.raises(ValueError, match="1 classes"):
        build_likelihood("categorical", 1)


def test_a_removed_likelihood_is_refused_with_its_replacement() -> None:
    """In requests and stored versions, which are read as this configuration."""
    for given in ("student", {"kind": "student", "components": 1}):
        with pytest.raises(ValueError, match=r"removed after release 0\.1\.0: take 'mixture'"):
            TypeAdapter(ModelConfig).validate_python({"target": "y", "likelihood": given})


MIXTURE = LikelihoodConfig(kind="mixture", components=3)
SCALES = [
    IdentityScale(),
    LogScale(0.0, 0.5),
    PowerScale(3.0, 2.0, 0.0),
    PowerScale(3.0, 2.0, 0.4),
    LogitScale(0.0, 20.0, 0.1),
]


@pytest.mark.parametrize("scale", SCALES, ids=repr)
def test_scales_are_monotone_with_their_inverse_and_derivative(scale: Scale) -> None:
    y = torch.linspace(0.01, 19.9, 400, dtype=torch.float64, requires_grad=True)
    u = scale(y)
    (slope,) = torch.autograd.grad(u.sum(), y)
    torch.testing.assert_close(scale.log_derivative(y), slope.log())
    torch.testing.assert_close(scale.inverse(u), y)
    assert bool((u.diff() > 0).all())


def described(values: np.ndarray, **support: float) -> tuple[NumberTarget, ...]:
    return describe_target(values, SupportConfig(**support) if support else None, MIXTURE)  # type: ignore[arg-type]


def test_the_shape_of_a_target_is_learned() -> None:
    """Support, whole numbers and atoms; a Gaussian's values have none of them."""
    random = np.random.default_rng(0)
    plain = described(random.normal(size=500))[0]
    assert (plain.lower, plain.upper, plain.integer, plain.atoms) == (None, None, False, ())
    skewed = described(random.gamma(2.0, 2.0, 500))
    assert skewed[0].lower == 0.0
    assert {one.scale.kind for one in skewed} == {"identity", "log", "power"}
    counts = described(random.poisson(3.0, 500).astype(float))[0]
    assert (counts.lower, counts.integer, counts.atoms) == (0.0, True, ())
    share = described(random.beta(2.0, 3.0, 500))
    assert (share[0].lower, share[0].upper) == (0.0, 1.0)
    assert "logit" in {one.scale.kind for one in share}
    dear = described(np.round(np.exp(random.normal(12, 0.5, 500))))[0]
    assert not dear.integer  # whole numbers that hardly repeat have a density


def test_many_equal_values_are_atoms() -> None:
    random = np.random.default_rng(0)
    amount = random.gamma(2.0, 2.0, 600)
    zeros = described(np.where(random.random(600) < 0.3, 0.0, amount))[0]
    assert (zeros.atoms, zeros.lower) == ((0.0,), 0.0)
    capped = described(np.minimum(random.normal(0, 1, 600), 1.0))[0]
    assert (capped.atoms, capped.upper) == ((1.0,), 1.0)
    inflated = np.where(random.random(600) < 0.5, 0, random.poisson(6.0, 600)).astype(float)
    assert described(inflated)[0].atoms == (0.0,)
    two = described(np.where(np.arange(600) % 2 == 0, 0.5, 40.5))[0]
    assert two.atoms == ()  # nothing would be left for a density


@pytest.mark.parametrize(
    ("values", "support"),
    [
        ([-1.0, -2.0, 3.0], {"lower": 0.0}),
        ([1.0, 2.0, 30.0], {"upper": 9.0}),
        ([1.0, 2.5, 3.0], {"integer": True}),
    ],
)
def test_values_outside_are_refused(values: list[float], support: dict[str, float]) -> None:
    with pytest.raises(InvalidData, match=r"^(5|10) rows"):
        described(np.array(values * 5), **support)


@pytest.mark.parametrize("given", [{"kind": "count"}, {"kind": "mixture", "scale": "log"}])
def test_a_likelihood_that_the_values_cannot_have_is_refused(given: dict[str, str]) -> None:
    random = np.random.default_rng(0)
    with pytest.raises(InvalidData):
        describe_target(random.normal(size=50), None, LikelihoodConfig(**given))  # type: ignore[arg-type]


def test_the_scale_on_which_a_line_is_right_ranks_first() -> None:
    """log y = x + noise: the log scale; the scores are densities of y, so that they compare."""
    random = np.random.default_rng(0)
    x = torch.from_numpy(random.normal(size=(600, 1)))
    noise = 0.3 * random.normal(size=600)
    multiplicative = np.exp(1.0 + x[:, 0].numpy() + noise)
    ranked = rank(described(multiplicative), x, multiplicative, seed=0)
    assert ranked[0][0].scale.kind == "log"
    truth = -0.5 * (noise / 0.3) ** 2 - np.log(0.3 * np.sqrt(2 * np.pi) * multiplicative)
    assert float(ranked[0][1].mean()) == pytest.approx(truth.mean(), abs=0.02)
    additive = 20 + 3 * x[:, 0].numpy() + noise
    assert rank(described(additive), x, additive, seed=0)[0][0].scale.kind == "identity"
