"""Misspelt levels: found beside what is meant, and not where levels are alike by nature."""

import numpy as np
import pytest

from core.datasets.findings.misspelt import misspelt, surely_misspelt
from tests.core.datasets.findings.tables import found


def test_misspelt_levels_are_named_with_their_rows_and_lines() -> None:
    kinds = ["Wohnung"] * 200 + ["Haus"] * 150 + ["Reihenhaus"] * 100
    for row, text in ((10, "Wohnug"), (250, "Hauss"), (251, "Hauss"), (400, "Reihen-Haus")):
        kinds[row] = text
    sure, doubtful = found({"Art": kinds, "x": np.arange(450) % 7}, "misspelt")
    assert (sure.column, sure.rows, doubtful.rows) == ("Art", 2, 2)
    assert [(one.line, one.value) for one in sure.examples] == [
        (11, "Wohnug"),
        (401, "Reihen-Haus"),
    ]
    assert [(one.line, one.value) for one in doubtful.examples] == [(251, "Hauss"), (252, "Hauss")]
    assert "“Hauss” (2 rows) beside “Haus” (148 rows)" in doubtful.message
    levels = {"Wohnug": "Wohnung", "Reihen-Haus": "Reihenhaus"}
    assert sure.fix == {"columns": [{"name": "Art", "levels": levels}]}
    assert doubtful.fix is None, "of four letters, too many words are one letter apart"


@pytest.mark.parametrize(
    ("rare", "rows", "other"),
    [
        ("A2", 1, "A1"),
        ("Zone 12", 1, "Zone 13"),
        ("Whonug", 1, "Wohnung"),  # two letters of seven
        ("Hauss", 6, "Haus"),
        ("x" * 300, 1, "x" * 299),
    ],
)
def test_what_may_be_meant_is_not(rare: str, rows: int, other: str) -> None:
    assert misspelt({other: 900, rare: rows}) == {}


def test_a_level_nearly_as_frequent_is_not_misspelt() -> None:
    assert misspelt({"Haus": 38, "Hauss": 2, "Wohnung": 900}) == {}
    assert misspelt({"Haus": 40, "Hauss": 2, "Wohnung": 900}) == {"Hauss": "Haus"}
    assert misspelt({"Haus": 90, "Hauss": 2}) == {}  # more than 1 % of the rows


@pytest.mark.parametrize(
    ("slip", "meant"), [("Muenich", "Munich"), ("Berln", "Berlin"), ("NewYork", "New York")]
)
def test_a_slip_inside_a_word_is_sure(slip: str, meant: str) -> None:
    rows = {meant: 300, "Garage": 100, slip: 2}
    found = misspelt(rows)
    assert found == {slip: meant}
    assert surely_misspelt(rows, found) == found


@pytest.mark.parametrize(
    ("rare", "frequent"),
    [
        ("Employer", "Employed"),  # the end of a word may make it another one
        ("Grade III", "Grade II"),
        ("Frankfurt an Main", "Frankfurt am Main"),
        ("atypical", "typical"),
        ("Iraq", "Iran"),
    ],
)
def test_what_may_be_another_word_is_not_sure(rare: str, frequent: str) -> None:
    rows = {frequent: 500, "Garage": 100, rare: 2}
    assert surely_misspelt(rows, misspelt(rows)) == {}


def test_honest_levels_that_are_alike_are_not_misspelt() -> None:
    countries = {"Iran": 400, "Iraq": 15, "Austria": 300, "Australia": 20, "Niger": 200}
    assert misspelt(countries | {"Nigeria": 10, "Malta": 120, "Mali": 9}) == {}
    assert misspelt({"mild": 500, "wild": 10, "never": 400, "fever": 12, "male": 50}) == {}
