"""Constants, duplicates, sentinels, codes, levels: each found, and none in honest tables."""

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn import datasets as known

from core.context import open_context
from core.datasets.files.ingest import ingest
from core.datasets.files.source import Source
from core.datasets.findings.misspelt import misspelt, surely_misspelt
from core.datasets.findings.target_checks import check_target
from core.settings import load_settings
from tests.core.datasets.findings.tables import columns_with, found

ROWS = 400
rng = np.random.default_rng(0)
X = rng.normal(size=ROWS)
COLOUR = rng.choice(["red", "green", "blue"], ROWS)

STATEMENTS = {"few_rows", "wide", "duplicate_rows", "constant"}  # facts, not suspicions


@pytest.mark.parametrize("name", ["iris", "diabetes", "digits"])
def test_scikit_learns_sets_raise_no_suspicion(name: str) -> None:
    frame = getattr(known, f"load_{name}")(as_frame=True).frame
    got = ingest(Source(table=pa.Table.from_pandas(frame, preserve_index=False)))
    assert [finding for finding in got.findings if finding.code not in STATEMENTS] == []
    assert all(profile.use for profile in got.profiles)


def replaced(values: np.ndarray, value: float) -> np.ndarray:
    changed = values.astype(float)
    changed[::40] = value
    return changed


@pytest.mark.parametrize(
    ("values", "value"),
    [
        (rng.normal(10, 8, ROWS), -999),
        (rng.integers(18, 90, ROWS), 999),
        (rng.integers(1, 8, ROWS), -9),
        (rng.integers(100, 5_000, ROWS), -1),
        (X, 1e36),
        (rng.integers(0, 300, ROWS), 2**31 - 1),
        (X, -12_345),
    ],
)
def test_a_sentinel_is_found_with_its_fix(values: np.ndarray, value: float) -> None:
    (finding,) = found({"a": replaced(values, value), "b": X}, "sentinel")
    assert finding.column == "a"
    assert finding.rows == 10
    (text,) = finding.fix["columns"][0]["missing"]
    assert float(text) == value
    assert [example.line for example in finding.examples] == [1, 41, 81, 121, 161]


@pytest.mark.parametrize(
    "values",
    [
        X,
        rng.exponential(size=ROWS) ** 3,
        rng.integers(0, 2, ROWS),
        rng.integers(-1, 40, ROWS),
        replaced(rng.integers(1_000, 2_000, ROWS), 0),
        rng.integers(0, 1_000, ROWS),
        rng.choice([9, 99, 999], ROWS),
        rng.permutation(ROWS) - 1,
    ],
)
def test_honest_numbers_have_no_sentinel(values: np.ndarray) -> None:
    assert not columns_with({"a": values, "b": X}, "sentinel")


def test_copies_and_recodings_are_found_and_others_not() -> None:
    table = {
        "x": X,
        "copy": X,
        "shuffled": rng.permutation(X),
        "colour": COLOUR,
        "Farbe": [{"red": "rot", "green": "grün", "blue": "blau"}[c] for c in COLOUR],
        "other": rng.permutation(COLOUR),
        "female": (X > 0).astype(int),
        "sex": np.where(X > 0, "F", "M"),
        "flag": rng.permutation(X) > 0,
        "gaps": [None if i == 7 else float(v) for i, v in enumerate(X)],
        "later": [None if i == 8 else float(v) for i, v in enumerate(X)],
    }
    assert set(columns_with(table, "duplicate_column")) == {"copy", "Farbe", "sex"}


def test_codes_of_several_rows_each_are_said_with_the_split_that_fits() -> None:
    machines = [f"M-{i % 40:03d}" for i in range(ROWS)]
    (finding,) = found({"Machine": machines, "b": X}, "repeated_code")
    assert 'training.split={"by": "Machine"}' in finding.message
    assert not columns_with({"colour": COLOUR, "b": X}, "repeated_code")
    towns = [f"{'abcdefghijkl'[i % 12]}ville" for i in range(ROWS)]
    assert not columns_with({"town": towns, "b": X}, "repeated_code")


def test_copies_are_a_warning_and_rows_that_are_equal_by_chance_are_not() -> None:
    again = np.concatenate([np.arange(ROWS), np.arange(25)])
    (copies,) = found({"x": X[again], "colour": COLOUR[again]}, "duplicate_rows")
    assert (copies.severity, copies.rows) == ("warning", 25)
    assert not columns_with({"colour": COLOUR, "flag": X > 0}, "duplicate_rows")
    grades = {"x": rng.integers(0, 3 * ROWS, ROWS), "flag": X > 0}  # some pairs have equal both
    (chance,) = found(grades, "duplicate_rows")
    assert (chance.severity, chance.rows > 10) == ("info", True)
    iris = pa.Table.from_pandas(known.load_iris(as_frame=True).frame, preserve_index=False)
    assert not [one for one in found(iris, "duplicate_rows") if one.severity == "warning"]


@pytest.mark.parametrize("unit", [1e-9, 1e-4, 1e9])
def test_findings_do_not_depend_on_the_unit(tmp_path: Path, unit: float) -> None:
    context = open_context(load_settings(data_dir=tmp_path))
    found = []
    for factor in (1.0, unit):
        random = np.random.default_rng(0)
        size, noise = random.normal(size=(2, 400))
        columns = {
            "size": size.tolist(),
            "scaled": (factor * random.gamma(2.0, size=400)).tolist(),
            "width": (factor * np.round(50 + random.random(400), 6)).tolist(),
            "copy": (factor * (3 * size + noise)).tolist(),
            "y": (factor * (3 * size + noise)).tolist(),
        }
        dataset, _ = context.datasets.add_columns(f"unit-{factor}", columns)
        load = partial(context.datasets.columns, dataset.id)
        findings = [*dataset.findings, *check_target(dataset, "y", load)]
        said = [(one.code, one.column, one.severity, one.rows) for one in findings]
        found.append(said + [(one.name, one.type, one.use) for one in dataset.columns])
    context.close()
    assert found[0] == found[1]
    assert ("leak", "copy") in [one[:2] for one in found[0]]


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
