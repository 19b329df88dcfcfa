"""Piecewise-linear encoding and normal scores beside formulas and scipy, and as they are stored."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from models.features.encodings import encode
from models.features.expansion import Distinct, Expansion, Form, NormalScore, Pieces


def expanded(pieces: Pieces, values: np.ndarray) -> np.ndarray:
    compact = torch.from_numpy(encode(pieces.line, values)).float().unsqueeze(1)
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


def test_a_repeated_value_leaves_quantiles_to_the_others() -> None:
    """With 95 % zeros plain quantiles would be 0, except for the last one or two."""
    values = np.concatenate([np.zeros(9_500), np.linspace(1, 2, 500)])
    assert len(Pieces.fit(Distinct.of(values))) > 12


def test_few_values_are_all_edges() -> None:
    values = np.repeat([1.0, 2.0, 5.0], [10, 5, 1])
    pieces = Pieces.fit(Distinct.of(values))
    assert pieces.edges == (1.0, 2.0, 5.0)
    assert pieces.centres == (6 / 16, 1 / 16)


def test_normal_scores_are_those_of_scipy() -> None:
    """Up to 256 distinct values every one is a knot; the ranks of equal values are averaged."""
    values = np.random.default_rng(3).integers(0, 200, 3_000) ** 2.0
    expected = norm.ppf((rankdata(values) - 0.5) / len(values))
    np.testing.assert_allclose(
        encode(NormalScore.fit(Distinct.of(values)).line, values), expected, atol=1e-12
    )


FINITE = st.floats(-1e300, 1e300, allow_nan=False)


@given(
    training=st.lists(FINITE, min_size=2, max_size=60, unique=True),
    new=st.lists(FINITE, min_size=1, max_size=20),
)
def test_no_value_leaves_the_range_of_training(training: list[float], new: list[float]) -> None:
    """Also for subnormal and for huge distances between edges."""
    distinct, values = Distinct.of(np.array([*training, 2e300])), np.array(new)
    score, pieces = NormalScore.fit(distinct), Pieces.fit(distinct)
    assert (np.abs(encode(score.line, values)) <= score.scores[-1] + 1e-9).all()
    found = encode(pieces.line, values)
    assert ((found >= 0) & (found <= len(pieces))).all()
    assert (np.abs(expanded(pieces, values)) <= 1).all()
    order = np.argsort(values)
    assert (np.diff(found[order]) >= 0).all()
