"""Numbers as people and programs write them."""

from collections.abc import Callable, Sequence
from typing import Any

from core.datasets.understanding.fixes import ColumnFix
from tests.corpus.case import Case, Said, text

AMOUNTS = [(1234.56 + 987.05 * i * i) % 98765 for i in range(20)]


def english(value: float) -> str:
    """1,234.56."""
    return f"{value:,.2f}"


def swapped(thousands: str, decimal: str) -> Callable[[float], str]:
    """Writes a number with other marks."""
    marks = str.maketrans(",.", thousands + decimal)
    return lambda value: english(value).translate(marks)


def indian(value: float) -> str:
    """12,34,567.00."""
    whole, _, rest = f"{value:.2f}".partition(".")
    head, tail = whole[:-3], whole[-3:]
    groups = [head[max(0, end - 2) : end] for end in range(len(head), 0, -2)][::-1]
    return ",".join([*groups, tail]) + "." + rest


def lines(write: Callable[[float], str], values: Sequence[float] = AMOUNTS) -> list[str]:
    """A row per amount, beside a plain number; semicolons between them."""
    return ["amount;y", *(f"{write(value)};{i * i % 7}" for i, value in enumerate(values))]


def amounts(code: str | None = None, **more: Any) -> dict[str, Any]:
    """What such a file becomes."""
    return {
        "rows": 20,
        "types": {"amount": "number", "y": "number"},
        "values": {"amount": [round(value, 2) for value in AMOUNTS]},
        "findings": [Said(code, "amount")] if code else [],
        **more,
    }


DASHED = [f"{i * 37 % 1999 / 8},{i * i % 1013 / 4}" for i in range(2000)]
DASHED[1233] = "-,7.5"

CASES = (
    Case(
        file="decimal_commas.csv",
        content=text(lines(lambda value: f"{value:.2f}".replace(".", ","))),
        reading={"delimiter": ";"},
        **amounts(),
    ),
    Case(
        file="decimal_commas_in_quotes.csv",
        content=text(["a,b", *(f'"{i * 7 % 20},{i % 10}5","{i * i % 13},5"' for i in range(20))]),
        rows=20,
        types={"a": "number", "b": "number"},
        values={"a": [0.05, 7.15, 14.25], "b": [0.5, 1.5, 4.5]},
    ),
    Case(file="thousands_commas.csv", content=text(lines(english)), **amounts("thousands")),
    Case(
        file="thousands_points.csv",
        content=text(lines(swapped(".", ","))),
        **amounts("thousands"),
    ),
    Case(
        file="thousands_blanks.csv",
        content=text(lines(swapped(" ", ","))),
        **amounts("thousands"),
    ),
    Case(
        file="thousands_narrow_blanks.csv",
        content=text(lines(swapped("\u202f", ","))),
        **amounts(),
    ),
    Case(
        file="thousands_apostrophes.csv",
        content=text(lines(swapped("'", "."))),
        **amounts("thousands"),
    ),
    Case(
        file="thousands_of_india.csv",
        content=text(lines(indian, [value * 100 for value in AMOUNTS])),
        **amounts("thousands", values={"amount": [round(value * 100, 2) for value in AMOUNTS[:5]]}),
    ),
    Case(
        file="thousands_or_decimals.csv",  # 1.234 may be either
        content=text(
            ["size;y", *(f"{1 + i * 7 % 90}.{100 + i * 37 % 900};{i % 5}" for i in range(20))]
        ),
        rows=20,
        types={"size": "number", "y": "number"},
        findings=[Said("thousands", "size", fix=True)],
    ),
    Case(
        file="currency_dollars.csv",
        content=text(lines(lambda value: f"${english(value)}")),
        **amounts("currency"),
    ),
    Case(
        file="currency_euros_behind.csv",
        content=text(lines(lambda value: f"{swapped('.', ',')(value)} €")),
        **amounts("currency"),
    ),
    Case(
        file="currency_codes.csv",
        content=text(lines(lambda value: f"USD {value:.2f}")),
        **amounts("currency"),
    ),
    Case(
        file="currency_francs.csv",
        content=text(lines(lambda value: f"CHF {swapped(chr(39), '.')(value)}")),
        **amounts("currency"),
    ),
    Case(
        file="two_currencies.csv",  # euros and dollars are not one unit
        content=text(
            [
                "amount;y",
                *(f"{'€$'[i % 2]}{value:.2f};{i * i % 7}" for i, value in enumerate(AMOUNTS)),
            ]
        ),
        rows=20,
        types={"amount": "category", "y": "number"},
        findings=[Said("currency", "amount")],
        unused=frozenset({"amount"}),  # nearly each of these words is in one row alone
        also=frozenset({"identifier"}),
    ),
    Case(
        file="accounting_parentheses.csv",
        content=text(
            [
                "amount;y",
                *(
                    f"{f'({english(value)})' if i % 4 == 1 else english(value)};{i * i % 7}"
                    for i, value in enumerate(AMOUNTS)
                ),
            ]
        ),
        rows=20,
        types={"amount": "number", "y": "number"},
        values={"amount": [1234.56, -2221.61, 5182.76]},
        also=frozenset({"thousands", "currency"}),
    ),
    Case(
        file="percent.csv",
        content=text(["rate,y", *(f"{i * 7 % 100}.5%,{i % 5}" for i in range(20))]),
        rows=20,
        types={"rate": "number", "y": "number"},
        findings=[Said("percent", "rate")],
    ),
    Case(
        file="percent_decimal_commas.csv",
        content=text(["rate;y", *(f"{i * 7 % 100},5 %;{i % 5}" for i in range(20))]),
        rows=20,
        types={"rate": "number", "y": "number"},
        findings=[Said("percent", "rate")],
    ),
    Case(
        file="units.csv",
        content=text(["mass,y", *(f"{i * 7 % 20}.25 kg,{i % 5}" for i in range(20))]),
        rows=20,
        types={"mass": "number", "y": "number"},
        values={"mass": [0.25, 7.25, 14.25]},
        findings=[Said("unit", "mass")],
    ),
    Case(
        file="two_units.csv",  # kilograms and grams are not one unit
        content=text(
            ["mass,y", *(f"{i * 7 % 20}.25 {'kg' if i % 2 else 'g'},{i % 5}" for i in range(20))]
        ),
        rows=20,
        types={"mass": "category", "y": "number"},
        findings=[Said("unit", "mass")],
        also=frozenset({"many_levels", "identifier"}),
    ),
    Case(
        file="one_dash_among_2000_numbers.csv",
        content=text(["x,y", *DASHED]),
        rows=2000,
        types={"x": "number", "y": "number"},
        missing={"x": 1},
        findings=[Said("mostly_numeric", "x", 1235)],
    ),
    Case(
        file="one_dash_is_a_level.csv",  # the owner says so
        content=text(
            ["x,y", *(f"{'-' if i % 9 == 4 else i % 4},{i * 7 % 23}.5" for i in range(24))]
        ),
        fixes=(ColumnFix(name="x", type="category", missing=()),),
        rows=24,
        types={"x": "category", "y": "number"},
        levels={"x": {"0", "1", "2", "3", "-"}},
    ),
    Case(
        file="below_detection.csv",
        content=text(
            [
                "lead,y",
                *(f"{'<0.5' if i in (3, 30) else f'{i * 7 % 20}.25'},{i % 5}" for i in range(60)),
            ]
        ),
        rows=60,
        types={"lead": "number", "y": "number"},
        missing={"lead": 2},
        findings=[Said("mostly_numeric", "lead", 5)],
    ),
    Case(
        file="scientific_and_signs.csv",
        content=text(
            [
                "a,b",
                *(
                    f"{['1e-3', '+2.5E+2', '.5', '-5.', '1E3'][i % 5]},{i * 7 % 20}"
                    for i in range(20)
                ),
            ]
        ),
        rows=20,
        types={"a": "number", "b": "number"},
        values={"a": [0.001, 250.0, 0.5, -5.0, 1000.0]},
    ),
    Case(
        file="unicode_minus.csv",
        content=text(
            ["a,b", *(f"{'−' if i % 3 else ''}{i * 7 % 20}.5,{i * 7 % 9}" for i in range(20))]
        ),
        rows=20,
        types={"a": "number", "b": "number"},
        values={"a": [0.5, -7.5, -14.5, 1.5]},
    ),
    Case(
        file="not_finite.csv",
        content=text(
            [
                "a,b",
                *(
                    f"{'inf' if i == 4 else 'NaN' if i == 7 else f'{i * 7 % 20}.5'},{i * 7 % 9}"
                    for i in range(30)
                ),
            ]
        ),
        rows=30,
        types={"a": "number", "b": "number"},
        missing={"a": 2},
        findings=[Said("mostly_numeric", "a", 6)],
    ),
)
