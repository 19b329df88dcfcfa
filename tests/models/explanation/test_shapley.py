"""Shapley values: exact values by enumeration, closed forms, and what the stated errors cover."""

from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch
from torch import Tensor

from models.explanation.explainer import Explainer


def tangled(x: Tensor) -> Tensor:
    """Two quantities with interactions of two and three columns."""
    a, b, c, d = x.double().T
    first = a * b + torch.sin(c) * d + a * c * d
    return torch.stack([first, (a + 2 * b).square() + c.abs() * d], -1)


def exact(f: Callable[[Tensor], Tensor], x: Tensor, background: Tensor) -> np.ndarray:
    """The Shapley values of one row by enumeration of all sets: features × quantities."""
    size = x.shape[0]

    def value(chosen: tuple[int, ...]) -> np.ndarray:
        mixed = background.clone()
        mixed[:, list(chosen)] = x[list(chosen)]
        return f(mixed).mean(0).numpy()

    found = []
    for j in range(size):
        others = [i for i in range(size) if i != j]
        sets = [s for n in range(size) for s in combinations(others, n)]
        gains = [(value((*s, j)) - value(s)) / (size * comb(size - 1, len(s))) for s in sets]
        found.append(np.sum(gains, axis=0))
    return np.stack(found)


def explainer(background: Tensor, feature_of: tuple[int, ...] | None = None) -> Explainer:
    columns = tuple(range(background.shape[1])) if feature_of is None else feature_of
    return Explainer(background, torch.tensor(columns), max(columns) + 1)


def rows(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))


def test_the_estimate_is_unbiased_for_the_values_by_enumeration() -> None:
    background, x = rows(16), rows(1, seed=1)
    one = explainer(background)
    found = [one.explain(x, tangled, tangled(x), seed)[0].values[0] for seed in range(300)]
    spread = torch.stack(found).std(0).numpy() / np.sqrt(len(found))
    difference = torch.stack(found).mean(0).numpy() - exact(tangled, x[0], background)
    np.testing.assert_array_less(np.abs(difference), 4 * spread + 1e-9)  # 8 values: 5e-4


def test_a_linear_function_has_its_closed_form() -> None:
    weights = torch.tensor([[1.0], [-2.0], [0.5], [0.0]], dtype=torch.float64)
    background, x = rows(64), rows(5, seed=1)

    def linear(x: Tensor) -> Tensor:
        return x.double() @ weights

    found, base = explainer(background).explain(x, linear, linear(x), 3)
    means = background.double().mean(0)
    expected = weights[:, 0] * (x.double() - means)
    np.testing.assert_allclose(found.values[..., 0].numpy(), expected.numpy(), atol=1e-12)
    np.testing.assert_allclose(base.numpy(), (means @ weights).numpy(), atol=1e-12)


def test_stated_errors_are_those_of_fresh_background_rows_and_orders() -> None:
    """z = (estimate − truth) ÷ stated error has a mean square of about 1 (t with 63 degrees)."""
    x, population = rows(1, seed=1), rows(20_000, seed=2)
    truth = exact(tangled, x[0], population)
    found = []
    for seed in range(300):
        background = rows(64, seed=1_000 + seed)
        one, _ = explainer(background).explain(x, tangled, tangled(x), seed)
        found.append((one.values[0].numpy() - truth) / one.errors[0].numpy())
    squares = np.square(found).mean(0)
    assert (squares > 0.7).all(), squares
    assert (squares < 1.4).all(), squares  # 1.03 ± 0.09 for each of 8 values; skew adds some
    assert (np.abs(found) < 1.96).mean() == pytest.approx(0.95, abs=0.02)


def test_columns_of_a_feature_move_together_and_further_columns_are_not_read() -> None:
    background, x = rows(32)[:, :3], rows(2, seed=1)
    seen: list[Tensor] = []

    def watched(mixed: Tensor) -> Tensor:
        seen.append(mixed)
        return mixed[:, :3].sum(1, keepdim=True).double()

    one = explainer(background, (0, 1, 1))
    found, _ = one.explain(x, watched, watched(x), 0)
    assert found.values.shape == (2, 2, 1)
    mixed = seen[-1]
    assert mixed.shape[1] == 3
    own = torch.stack([torch.isin(mixed[:, i], x[:, i]) for i in range(3)], 1)
    assert torch.equal(own[:, 1], own[:, 2])
    assert own[:, 0].any()
