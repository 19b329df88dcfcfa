"""Standard errors beside the deviation of metrics over repeated draws of held-out rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from models.evaluation.metrics import classification_scores, regression_scores, summarise
from models.evaluation.standard_errors import of_mean, of_root, of_share
from models.prediction.predictive import CategoricalMixture, GaussianMixture

ROWS, REPETITIONS = 60, 300


def numbers(generator: torch.Generator) -> dict[str, Any]:
    """Metrics of right predictive distributions N(m, 1) with random means."""
    mean = torch.randn(ROWS, generator=generator).double()
    target = mean + torch.randn(ROWS, generator=generator).double()
    mixture = GaussianMixture(mean.unsqueeze(0), torch.ones(1, ROWS).double())
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


def test_errors_by_level() -> None:
    generator = torch.Generator().manual_seed(0)
    found = [numbers(generator) for _ in range(REPETITIONS)]
    inside = np.array([one["coverage"]["0.8"] for one in found])
    stated = np.mean([one["standard_errors"]["coverage"]["0.8"] for one in found])
    assert np.std(inside) == pytest.approx(stated, rel=0.15)
    assert found[0]["standard_errors"]["interval_width"]["0.5"] == pytest.approx(0)


def test_a_share_of_all_rows_has_an_error() -> None:
    assert of_share(torch.ones(30).double()) == pytest.approx((32 / 34 * 2 / 34 / 30) ** 0.5)


def test_one_row_has_no_error() -> None:
    assert of_mean(torch.ones(1)) is None
    assert of_root(torch.ones(1)) is None


def test_infinite_values_have_none() -> None:
    assert of_mean(torch.tensor([1.0, torch.inf])) is None


def test_weights_count_rows() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(50, generator=generator).double()
    counts = torch.randint(0, 4, (50,), generator=generator)
    many, weights = values.repeat_interleave(counts), counts.double()
    for error in (of_mean, of_root, of_share):
        assert error(values, weights) == pytest.approx(error(many))
