"""Words: yes and no, true and false, missing, blanks and case."""

from itertools import product

from core.datasets.understanding.fixes import ColumnFix
from tests.corpus.case import Case, Said, text

PAIRS = {
    "english": ("yes", "no"),
    "letters": ("y", "n"),
    "german": ("ja", "nein"),
    "french": ("oui", "non"),
    "spanish": ("sí", "no"),
    "switch": ("on", "off"),
}
TRUTHS = {
    "english": ("true", "false"),
    "python": ("True", "False"),
    "r": ("TRUE", "FALSE"),
    "letters": ("T", "F"),
    "german": ("WAHR", "FALSCH"),
    "french": ("VRAI", "FAUX"),
}
WAYS = [i * i % 5 in (0, 1) for i in range(24)]


def columns(words: dict[str, tuple[str, str]]) -> list[str]:
    """A column per pair, each turned by one row."""
    rows = []
    for i in range(24):
        cells = [pair[not WAYS[(i + k) % 24]] for k, pair in enumerate(words.values())]
        rows.append(",".join([*cells, f"{i * 7 % 24}.5"]))
    return [",".join([*words, "y"]), *rows]


def turned(place: int, pair: tuple[object, object]) -> list[object]:
    """The values of a column."""
    return [pair[not WAYS[(i + place) % 24]] for i in range(24)]


BLANKS = [
    f"{a}{colour}{b}" for colour, a, b in product(("red", "green", "blue"), ("", " "), ("", "  "))
]
HARD = ("red", "red\u00a0", "green")
CASED = ["Oslo", "OSLO", "oslo", "Rome", "Rome", "Rome"]
NOTHINGS = ["N/A", "n/a", "NULL", "", "NaN", "null"]


def with_nothings(i: int) -> tuple[str, str, str]:
    """A row in which a word may stand for a missing value."""
    nothing = NOTHINGS[i % 6]
    city = nothing if i % 4 == 1 else "Oslo" if i % 3 else "Rome"
    return city, nothing if i % 5 == 2 else f"{i * 7 % 23}.5", str(i % 5)


CASES = (
    Case(
        file="yes_and_no.csv",
        content=text(columns(PAIRS)),
        rows=24,
        types=dict.fromkeys(PAIRS, "boolean") | {"y": "number"},
        values={name: turned(k, pair) for k, (name, pair) in enumerate(PAIRS.items())},
    ),
    Case(
        file="true_and_false.csv",
        content=text(columns(TRUTHS)),
        rows=24,
        types=dict.fromkeys(TRUTHS, "boolean") | {"y": "number"},
        values={name: turned(k, (True, False)) for k, name in enumerate(TRUTHS)},
    ),
    Case(
        file="yes_in_any_case.csv",
        content=text(
            [
                "smoker,y",
                *(f"{['Yes', 'NO', 'yes ', 'No'][i % 4]},{i * 7 % 24}.5" for i in range(24)),
            ]
        ),
        rows=24,
        types={"smoker": "boolean", "y": "number"},
        also=frozenset({"blanks", "case"}),
    ),
    Case(
        file="yes_no_and_unknown.csv",  # three answers are a category
        content=text(
            ["smoker,y", *(f"{['yes', 'no', 'unknown'][i % 3]},{i * 7 % 24}.5" for i in range(24))]
        ),
        rows=24,
        types={"smoker": "category", "y": "number"},
        levels={"smoker": {"yes", "no", "unknown"}},
    ),
    Case(
        file="blanks_around_levels.csv",
        content=text(["colour;y", *(f"{BLANKS[i % 12]};{i * 7 % 23}.5" for i in range(36))]),
        rows=36,
        types={"colour": "category", "y": "number"},
        levels={"colour": {"red", "green", "blue"}},
        findings=[Said("blanks", "colour")],
    ),
    Case(
        file="blanks_kept.csv",
        content=text(["code;y", *(f"{['A', ' A', 'B'][i % 3]};{i * 7 % 23}.5" for i in range(24))]),
        fixes=(ColumnFix(name="code", format="exact"),),
        rows=24,
        types={"code": "category", "y": "number"},
        levels={"code": {"A", " A", "B"}},
    ),
    Case(
        file="hard_blanks.csv",
        content=text(["colour,y", *(f"{HARD[i % 3]},{i * 7 % 23}.5" for i in range(24))]),
        rows=24,
        types={"colour": "category", "y": "number"},
        levels={"colour": {"red", "green"}},
        findings=[Said("blanks", "colour")],
    ),
    Case(
        file="case_of_levels.csv",
        content=text(["city,y", *(f"{CASED[i % 6]},{i * 7 % 23}.5" for i in range(24))]),
        rows=24,
        types={"city": "category", "y": "number"},
        findings=[Said("case", "city")],
    ),
    Case(
        file="words_for_missing.csv",
        content=text(["city,x,y", *(",".join(with_nothings(i)) for i in range(40))]),
        rows=40,
        types={"city": "category", "x": "number", "y": "number"},
        missing={"city": 10, "x": 8},
        levels={"city": {"Oslo", "Rome"}},
        also=frozenset({"mostly_numeric"}),
    ),
    Case(
        file="question_marks.csv",  # as in the UCI repository
        content=text(
            [
                "horsepower,y",
                *(f"{'?' if i % 25 == 7 else f'{i * 37 % 211}.5'},{i % 5}" for i in range(100)),
            ]
        ),
        rows=100,
        types={"horsepower": "number", "y": "number"},
        missing={"horsepower": 4},
        findings=[Said("mostly_numeric", "horsepower", 9)],
    ),
    Case(
        file="no_statement_in_german.csv",
        content=text(
            [
                "alter,y",
                *(f"{'keine Angabe' if i % 25 == 7 else i * 37 % 61},{i % 5}" for i in range(100)),
            ]
        ),
        rows=100,
        types={"alter": "number", "y": "number"},
        missing={"alter": 4},
        findings=[Said("mostly_numeric", "alter", 9)],
    ),
    Case(
        file="spreadsheet_errors.csv",
        content=text(
            [
                "ratio,y",
                *(
                    f"{'#DIV/0!' if i % 25 == 7 else f'{i * 37 % 61}.5'},{i % 5}"
                    for i in range(100)
                ),
            ]
        ),
        rows=100,
        types={"ratio": "number", "y": "number"},
        missing={"ratio": 4},
        findings=[Said("mostly_numeric", "ratio", 9)],
    ),
)
