"""Hashed texts: the formula by hand, unbiased inner products, and equal inputs for ever."""

import math

import numpy as np
import pytest

from models.features.texts import WIDTH, TextEncoder


def column(*texts: str | None) -> np.ndarray:
    return np.array([*texts, None], object)[:-1]


def test_a_text_is_the_signed_sum_of_its_known_features() -> None:
    texts = ["good house"] * 3 + ["bad house"] * 4 + ["view of the lake"] * 2
    encoder = TextEncoder.fit(column(*texts))
    assert len(encoder.hashes) == 5  # good, bad, house, "good house", "bad house": in 3 rows each
    good, bad, both = (
        encoder.read(column(t))[0].astype(float) for t in ("good", "bad", "good\nGOOD, bad! view")
    )
    for one in (good, bad):
        assert np.count_nonzero(one) == 1
        assert abs(one).max() == pytest.approx(math.sqrt(WIDTH))
    weights = np.array([(1 + math.log(2)) * (1 + math.log(10 / 4)), 1 + math.log(10 / 5)])
    expected = math.sqrt(WIDTH) * weights / np.linalg.norm(weights)
    for one, size in zip((good, bad), expected, strict=True):
        place = abs(one).argmax()
        assert both[place] == pytest.approx(math.copysign(size, one[place]), rel=1e-4)
    assert np.count_nonzero(both) == 2


def test_the_hash_never_changes() -> None:
    encoder = TextEncoder.fit(column(*["good", "bad", "schön"] * 3))
    encoded = [encoder.read(column(word))[0] for word in ("good", "bad", "schön")]
    assert [int(abs(one).argmax()) for one in encoded] == PLACES
    assert [float(np.sign(one.sum())) for one in encoded] == SIGNS


PLACES = [484, 130, 76]
SIGNS = [1, 1, 1]


def test_missing_empty_and_unknown_texts_are_zero_and_case_does_not_count() -> None:
    encoder = TextEncoder.fit(column(*["a b", "b c"] * 3))
    none, empty, unknown, first, second = encoder.read(column(None, "", "z", "A  b", "a, B!"))
    assert not none.any()
    assert not empty.any()
    assert not unknown.any()
    assert (first == second).all()
    assert first.any()
    assert not encoder.read(column("")).any()


def test_weights_count_as_rows() -> None:
    thrice = TextEncoder.fit(column(*["a b"] * 4, "c d", "c d", "c d"))
    weighted = TextEncoder.fit(column("a b", "c d"), np.array([4.0, 3.0]))
    assert thrice == weighted
    assert thrice.hashes
