"""Shapes are checked where a call is new, and again at growing distances."""

import pytest
import torch
from beartype import beartype
from jaxtyping import Float, TypeCheckError, jaxtyped
from torch import Tensor

from models.likelihoods.gaussian import gaussian_log_prob
from tests.shape_checks import Calls, thinned


def _sum(x: Float[Tensor, "rows columns"], y: Float[Tensor, " rows"]) -> Float[Tensor, " rows"]:
    return x.sum(1) + y.sum()


def test_a_wrong_shape_is_found_at_the_first_call_that_has_it() -> None:
    total = thinned(jaxtyped)(_sum, typechecker=beartype)
    for _ in range(20):
        total(torch.ones(3, 2), torch.ones(3))
    with pytest.raises(TypeCheckError, match="parameters"):
        total(torch.ones(3, 2), torch.ones(4))


def test_calls_of_a_form_are_checked_at_growing_distances() -> None:
    calls = Calls()
    x = torch.ones(3)
    checked = [n for n in range(1, 40) if calls.next_is_checked((x,), {"scale": 1.0})]
    assert checked == [1, 2, 3, 5, 9, 17, 33]
    assert calls.next_is_checked((torch.ones(4),), {"scale": 1.0})
    assert calls.next_is_checked((x,), {"scale": 1})


def test_counts_begin_anew_in_each_test(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls()
    assert [calls.next_is_checked((1,), {}) for _ in range(4)] == [True, True, True, False]
    monkeypatch.setattr(Calls, "current_test", Calls.current_test + 1)
    assert calls.next_is_checked((1,), {})


def test_functions_of_models_are_checked_in_these_tests() -> None:
    row, rows = torch.zeros(3), torch.zeros(2, 3)
    with pytest.raises(TypeCheckError, match="targets"):
        gaussian_log_prob(row, row, rows)
