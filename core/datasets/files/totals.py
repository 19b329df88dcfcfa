"""The row of totals that reports have below their table: it is not a row like the others."""

import pyarrow as pa
import pyarrow.compute as pc

LEAST_ROWS = 3  # with the totals
TOTALS = frozenset(
    (
        *("total", "totals", "sum", "grand total", "average", "mean"),
        *("summe", "gesamt", "gesamtsumme", "mittelwert"),
        *("totaux", "somme", "moyenne", "suma", "totale", "media"),
    )
)


def is_total(text: str) -> bool:
    """Whether a cell says that its row holds totals."""
    return text.strip().rstrip(":").strip().lower() in TOTALS


def ends_with_totals(table: pa.Table) -> bool:
    """Whether the first cell of the last row says so, and no cell above it does.

    Args:
        table: columns of strings.
    """
    if table.num_rows < LEAST_ROWS or not table.num_columns:
        return False
    first = table.column(0)
    word = first[-1].as_py()
    if word is None or not is_total(word):
        return False
    return len(first.filter(pc.equal(first, first[-1]))) == 1
