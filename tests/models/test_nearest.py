"""The name that was probably meant, of names that others choose."""

import difflib
import random
import time

import pytest

from models.messages import nearest_name


def test_the_nearest_of_misspelt_names_is_that_of_the_standard_library() -> None:
    known = ["Living area", "price", "year_built", "Price per m²", "postal code", "district"]
    for name in ("prise", "living  area", "yearbuilt", "POSTAL_CODE", "distrct", "zzz"):
        (*near,) = difflib.get_close_matches(name.casefold(), map(str.casefold, known), n=1)
        found = nearest_name(name, known)
        assert (found and found.casefold()) == (near[0] if near else None)


@pytest.mark.timing
def test_names_that_are_made_to_be_alike_take_no_time() -> None:
    """20,000 of 190 letters, of which there are two, in processor time of this thread."""
    chosen = random.Random(0)
    known = ["".join(chosen.choices("ab", k=190)) for _ in range(20_000)]
    started = time.thread_time()
    assert nearest_name(f"{known[7]}c", known) == known[7]
    assert time.thread_time() - started < 5
