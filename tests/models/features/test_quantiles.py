"""Piecewise-linear encoding and normal scores beside their formulas and scipy."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from models.features.expansion import Expansion, Form
from models.features.quantiles import MISSING, Distinct, NormalScore, Pieces


def expanded(pieces: Pieces, values: np.ndarray) -> np.ndarray:
    compact = torch.from_numpy(pieces.positions(values).astype(np.float32)).unsqueeze(1)
    return Expansion.of([Form(pieces=(pieces,))])(compact).numpy()


def formula(pieces: Pieces, values: np.ndarray) -> np.ndarray:
    """Equation 1 of Gorishniy et al. 2022 with bounded outer pieces, centred."""
    edges = np.array(pieces.edges)
    shares = (values[:, None] - edges[:-1]) / np.diff(edges)
    return shares.clip(0, 1) - np.array(pieces.centres)


def test_pieces_are_those_of_the_formula() -> None:
    random = np.random.default_rng(0)
    values = random.gamma(0.7, size=5_000)
    pieces = Pieces.fit(Distinct.of(values))
    assert len(pieces) == 32
    new = np.concatenate([random.gamma(1.0, size=1_000), [-5.0, 1e30], pieces.edges])
    # A position of up to 32 has a rounding error of 2^-20 in float32.
    np.testing.assert_allclose(expanded(pieces, new), formula(pieces, new), atol=2e-6)


def test_bins_hold_equal_shares_of_the_rows() -> None:
    values = np.random.default_rng(1).normal(size=32_000)
    counts, _ = np.histogram(values, Pieces.fit(Distinct.of(values)).edges)
    assert abs(counts - 1_000).max() <= 2


def test_pieces_are_centred_on_the_training_rows() -> None:
    random = np.random.default_rng(2)
    values = np.where(random.random(4_000) < 0.4, 0.0, random.exponential(size=4_000))
    means = expanded(Pieces.fit(Distinct.of(values)), values).mean(0, dtype=np.float64)
    np.testing.assert_allclose(means, 0, atol=1e-6)


def test_a_repeated_value_leaves_quantiles_to_the_others() -> None:
    """With 95 % zeros plain quantiles would be 0, except for the last one or two."""
    values = np.concatenate([np.zeros(9_500), np.linspace(1, 2, 500)])
    assert len(Pieces.fit(Distinct.of(values))) > 12


def test_few_values_are_all_edges() -> None:
    values = np.repeat([1.0, 2.0, 5.0], [10, 5, 1])
    pieces = Pieces.fit(Distinct.of(values))
    assert pieces.edges == (1.0, 2.0, 5.0)
    assert pieces.centres == (6 / 16, 1 / 16)


def test_a_missing_value_has_the_mean_of_every_piece() -> None:
    pieces = Pieces.fit(Distinct.of(np.arange(100.0)))
    assert pieces.positions(np.array([np.nan])).tolist() == [MISSING]
    assert (expanded(pieces, np.array([np.nan])) == 0).all()


def test_normal_scores_are_those_of_scipy() -> None:
    """Up to 256 distinct values every one is a knot; the ranks of equal values are averaged."""
    values = np.random.default_rng(3).integers(0, 200, 3_000) ** 2.0
    expected = norm.ppf((rankdata(values) - 0.5) / len(values))
    np.testing.assert_allclose(NormalScore.fit(Distinct.of(values))(values), expected, atol=1e-12)


def test_normal_scores_of_many_values_are_interpolated() -> None:
    """Between knots 0.4 % of the rows apart Φ⁻¹ is nearly straight, except in the tails."""
    values = np.exp(np.random.default_rng(4).normal(size=20_000))
    found = NormalScore.fit(Distinct.of(values))(values)
    expected = norm.ppf((rankdata(values) - 0.5) / len(values))
    middle = abs(expected) < 2
    assert abs(found - expected)[middle].max() < 0.02
    assert found.min() == pytest.approx(expected.min())
    assert found.max() == pytest.approx(expected.max())


def test_scores_outside_the_training_rows_stay_at_their_ends() -> None:
    score = NormalScore.fit(Distinct.of(np.arange(10.0)))
    assert score(np.array([-1e300, 1e300])).tolist() == [score.scores[0], score.scores[-1]]


def test_values_that_differ_by_less_than_a_slope_can_say_are_equal() -> None:
    tiny = np.array([0.0, 5e-324, 2e-309, 1.0])
    assert Distinct.of(tiny).values.tolist() == [0.0, 1.0]
    assert np.isfinite(NormalScore.fit(Distinct.of(tiny))(tiny)).all()


FINITE = st.floats(-1e300, 1e300, allow_nan=False)


@settings(deadline=None)
@given(
    training=st.lists(FINITE, min_size=2, max_size=60, unique=True),
    new=st.lists(FINITE, min_size=1, max_size=20),
)
def test_no_value_leaves_the_range_of_training(training: list[float], new: list[float]) -> None:
    """Also for subnormal and for huge distances between edges."""
    distinct, values = Distinct.of(np.array([*training, 2e300])), np.array(new)
    score, pieces = NormalScore.fit(distinct), Pieces.fit(distinct)
    assert (np.abs(score(values)) <= score.scores[-1] + 1e-9).all()
    found = pieces.positions(values)
    assert ((found >= 0) & (found <= len(pieces))).all()
    assert (np.abs(expanded(pieces, values)) <= 1).all()
    order = np.argsort(values)
    assert (np.diff(found[order]) >= 0).all()
