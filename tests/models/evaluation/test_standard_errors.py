"""Standard errors beside the deviation of metrics over repeated draws of held-out rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from models.evaluation.metrics import classification_scores, regression_scores, summarise
from models.likelihoods.mixture import CategoricalMixture
from models.likelihoods.number_mixture import NumberMixture

ROWS, REPETITIONS = 60, 300


def numbers(generator: torch.Generator) -> dict[str, Any]:
    """Metrics of right predictive distributions N(m, 1) with random means."""
    mean = torch.randn(ROWS, generator=generator).double()
    target = mean + torch.randn(ROWS, generator=generator).double()
    mixture = NumberMixture.gaussian(mean.unsqueeze(0), torch.ones(1, ROWS).double())
    return summarise(regression_scores(mixture, target))


def classes(generator: torch.Generator) -> dict[str, Any]:
    probs = torch.rand(ROWS, 3, generator=generator).double().softmax(-1)
    truth = probs.multinomial(1, generator=generator).squeeze(1)
    return summarise(classification_scores(CategoricalMixture(probs.log().unsqueeze(0)), truth))


@pytest.mark.parametrize(
    ("draw", "names"),
    [
        (numbers, ("log_likelihood", "rmse", "mae", "crps")),
        (classes, ("log_likelihood", "accuracy", "brier")),
    ],
)
def test_stated_errors_are_the_deviations_over_other_rows(
    draw: Callable[[torch.Generator], dict[str, Any]], names: tuple[str, ...]
) -> None:
    """A deviation of 300 draws is known to 4 %, with heavy tails to some 6 %: within 18 %."""
    generator = torch.Generator().manual_seed(0)
    found = [draw(generator) for _ in range(REPETITIONS)]
    for name in names:
        stated = np.sqrt(np.mean([one["standard_errors"][name] ** 2 for one in found]))
        assert np.std([one[name] for one in found]) == pytest.approx(stated, rel=0.18), name
