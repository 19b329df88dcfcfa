"""Likelihoods against torch.distributions, and where hand-written versions fail."""

import pytest
import torch
from pydantic import TypeAdapter
from torch import distributions

from models.config import ModelConfig
from models.likelihoods import (
    Bernoulli,
    Categorical,
    HeteroscedasticGaussian,
    HomoscedasticGaussian,
    build_likelihood,
)

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
