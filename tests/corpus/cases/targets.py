"""What is found out for one target."""

from tests.corpus.case import COLOURS, Case, Said, text

ROWS = 120
X = [i * 37 % 101 / 8 for i in range(ROWS)]
Z = [i * i % 53 / 4 for i in range(ROWS)]


def beside(name: str, cells: list[str], header: str = "x,z") -> list[str]:
    """Two numbers, and the column with these cells."""
    rows = zip(X, Z, cells, strict=True)
    return [f"{header},{name}", *(f"{x},{z},{cell}" for x, z, cell in rows)]


NUMBERS = {"x": "number", "z": "number"}

CASES = (
    Case(
        file="target_zero_one.csv",
        content=text(beside("churned", [str(int(x > 6)) for x in X])),
        rows=ROWS,
        types=NUMBERS | {"churned": "number"},
        target="churned",
        findings=[Said("task", "churned")],
        also=frozenset({"leak"}),
    ),
    Case(
        file="target_grades.csv",
        content=text(beside("grade", [str(1 + i * i % 5) for i in range(ROWS)])),
        rows=ROWS,
        types=NUMBERS | {"grade": "number"},
        target="grade",
        findings=[Said("task", "grade")],
    ),
    Case(
        file="target_currency.csv",
        content=text(beside("price", [f'"${1000 + 13 * i * i % 9000:,.2f}"' for i in range(ROWS)])),
        rows=ROWS,
        types=NUMBERS | {"price": "number"},
        target="price",
        findings=[Said("currency", "price")],
    ),
    Case(
        file="target_missing.csv",
        content=text(beside("y", ["" if i % 10 == 4 else f"{i * 7 % 31}.5" for i in range(ROWS)])),
        rows=ROWS,
        types=NUMBERS | {"y": "number"},
        missing={"y": 12},
        target="y",
        findings=[Said("target_missing", "y")],
    ),
    Case(
        file="target_copied.csv",
        content=text(
            [
                "x,price_in_cents,price",
                *(f"{x},{100 * (5 + i * i % 89)},{5 + i * i % 89}.0" for i, x in enumerate(X)),
            ]
        ),
        rows=ROWS,
        types={"x": "number", "price_in_cents": "number", "price": "number"},
        target="price",
        findings=[Said("leak", "price_in_cents")],
        also=frozenset({"duplicate_column"}),
    ),
    Case(
        file="target_told_by_a_category.csv",
        content=text(
            [
                "x,status,cancelled",
                *(
                    f"{x},{['closed', 'open'][i * i % 3 == 0]},{['yes', 'no'][i * i % 3 == 0]}"
                    for i, x in enumerate(X)
                ),
            ]
        ),
        rows=ROWS,
        types={"x": "number", "status": "category", "cancelled": "boolean"},
        target="cancelled",
        findings=[Said("leak", "status")],
        also=frozenset({"duplicate_column"}),
    ),
    Case(
        file="target_of_hundreds_of_classes.csv",
        content=text(beside("product", [f"{COLOURS[i % 3]}{i * 7 % 90}" for i in range(ROWS)])),
        rows=ROWS,
        types=NUMBERS | {"product": "category"},
        target="product",
        findings=[Said("many_levels", "product"), Said("rare_classes", "product")],
    ),
)
