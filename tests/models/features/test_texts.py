"""Hashed texts: the formula by hand, unbiased inner products, and equal inputs for ever."""

import math
from collections import Counter

import numpy as np
import pytest

from models.features.texts import MAX_KNOWN, WIDTH, TextEncoder

WORDS = [f"word{i}" for i in range(300)]
rng = np.random.default_rng(0)


def column(*texts: str | None) -> np.ndarray:
    return np.array([*texts, None], object)[:-1]


def sentences(count: int) -> list[str]:
    return [" ".join(rng.choice(WORDS, 12)) for _ in range(count)]


def test_a_text_is_the_signed_sum_of_its_known_features() -> None:
    texts = ["good house"] * 3 + ["bad house"] * 4 + ["view of the lake"] * 2
    encoder = TextEncoder.fit(column(*texts))
    assert len(encoder.hashes) == 5  # good, bad, house, "good house", "bad house": in 3 rows each
    good, bad, both = (
        encoder.encode(column(t))[0].astype(float) for t in ("good", "bad", "good\nGOOD, bad! view")
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


def test_inner_products_are_those_of_the_words_on_average() -> None:
    texts = sentences(300)
    encoder = TextEncoder.fit(column(*texts))
    encoded = encoder.encode(column(*texts)).astype(float)
    found = encoded @ encoded.T / WIDTH
    bags = [Counter(text.split()) for text in texts]
    shared = np.array([[len(a.keys() & b.keys()) for b in bags] for a in bags])
    others = ~np.eye(len(texts), dtype=bool)
    # 12 known words in 512 places: an unshared pair adds noise of about 1 ÷ √512 and no bias, whose
    # mean over 50,000 pairs is known to 0.001; a shared word is about 1 ÷ 12 of the square norm
    assert abs(found[others & (shared == 0)].mean()) < 0.003
    assert found[others & (shared == 2)].mean() == pytest.approx(2 / 12, abs=0.03)
    assert np.diag(found) == pytest.approx(np.ones(len(texts)), rel=1e-5)


def test_the_hash_never_changes() -> None:
    encoder = TextEncoder.fit(column(*["good", "bad", "schön"] * 3))
    encoded = [encoder.encode(column(word))[0] for word in ("good", "bad", "schön")]
    assert [int(abs(one).argmax()) for one in encoded] == PLACES
    assert [float(np.sign(one.sum())) for one in encoded] == SIGNS


PLACES = [484, 130, 76]
SIGNS = [1, 1, 1]


def test_missing_empty_and_unknown_texts_are_zero_and_case_does_not_count() -> None:
    encoder = TextEncoder.fit(column(*["a b", "b c"] * 3))
    none, empty, unknown, first, second = encoder.encode(column(None, "", "z", "A  b", "a, B!"))
    assert not none.any()
    assert not empty.any()
    assert not unknown.any()
    assert (first == second).all()
    assert first.any()
    assert not encoder.encode(column("")).any()


def test_texts_that_are_all_equal_have_no_inputs() -> None:
    encoder = TextEncoder.fit(column(*["same"] * 5))
    assert encoder.form.width == 0
    assert encoder.encode(column("same", "other")).shape == (2, 0)


def test_weights_count_as_rows() -> None:
    thrice = TextEncoder.fit(column(*["a b"] * 4, "c d", "c d", "c d"))
    weighted = TextEncoder.fit(column("a b", "c d"), np.array([4.0, 3.0]))
    assert thrice == weighted
    assert thrice.hashes


def test_features_are_bounded_and_the_most_frequent_are_kept() -> None:
    many = [f"x{i}" for i in range(2 * MAX_KNOWN)]
    texts = [" ".join(many)] * 3 + ["often"] * 5
    encoder = TextEncoder.fit(column(*texts))
    assert len(encoder.hashes) == MAX_KNOWN
    assert encoder.encode(column("often")).any()


def test_blocks_do_not_matter() -> None:
    texts = sentences(5_000)
    encoder = TextEncoder.fit(column(*texts))
    whole, end = (encoder.encode(column(*some)) for some in (texts, texts[4_990:]))
    assert np.array_equal(whole[4_990:], end)
