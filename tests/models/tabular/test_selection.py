"""Which candidates are kept, on scores whose right answer is known."""

from typing import Any

import torch
from torch import Tensor

from models.config import PartConfig
from models.evaluation.weighting import paired
from models.features.targets import NumberTarget
from models.inference.method import Fit
from models.tabular.candidates import Candidate
from models.tabular.selection import Attempt, describe, keep, notes_on

ROWS = 400


def _attempt(scores: Tensor, kl_weight: float = 0.1, **part: Any) -> Attempt:
    config = PartConfig(hidden=(8,), kl_weight=kl_weight, **part)
    candidate = Candidate(config, "heteroscedastic", NumberTarget(0.0, 1.0))
    return Attempt(candidate, Fit(None, [], 0), scores.double())


def _noise(seed: int) -> Tensor:
    return torch.randn(ROWS, generator=torch.Generator().manual_seed(seed))


def test_a_clearly_worse_candidate_is_left_out() -> None:
    good = _attempt(_noise(0))
    worse = _attempt(_noise(0) - 1.0, kl_weight=1.0)  # worse on every row alike
    assert keep([worse, good], most=3) == [good]


def test_candidates_within_a_standard_error_are_averaged() -> None:
    first, second = _attempt(_noise(0)), _attempt(_noise(1), kl_weight=1.0)
    behind = paired(first.scores, second.scores)
    assert abs(behind.difference) < behind.standard_error, "or the seeds do not fit this test"
    assert set(map(id, keep([first, second], most=3))) == {id(first), id(second)}


def test_of_many_ties_those_are_kept_that_help_the_mixture_most() -> None:
    base = _noise(0)
    best = _attempt(base + 0.01)
    twin = _attempt(base + 0.005, kl_weight=0.3)
    complement = _attempt(-base, kl_weight=1.0)  # as good, and right where the others are wrong
    assert keep([twin, best, complement], most=2)[1] is complement


def test_trees_alone_are_kept_beside_what_reads_columns() -> None:
    base = _noise(0)
    alone, columns = _attempt(base, inputs="none", boosted=True), _attempt(base - 1.0)
    assert keep([alone, columns], most=3) == [columns, alone]
    assert keep([alone, columns], most=1) == [columns]
    note = describe([alone, columns], [columns])["note"]
    assert note.endswith(" is kept: trees alone, 8, KL 0.1 is better, but reads no columns")


def test_variational_candidates_win_ties_against_point_estimates() -> None:
    scores = _noise(0)
    variational, points = _attempt(scores), _attempt(scores + 1e-6 * _noise(1), kl_weight=0.0)
    assert keep([points, variational], most=3) == [variational]
    assert not any(
        "point estimates" in note for note in notes_on([points, variational], [variational])
    )


def test_point_estimates_that_are_clearly_better_are_kept_and_noted() -> None:
    variational, points = _attempt(_noise(0)), _attempt(_noise(0) + 0.25, kl_weight=0.0)
    kept = keep([points, variational], most=1)
    assert kept == [points]
    assert any("0.25 nats per row" in note for note in notes_on([points, variational], kept))
