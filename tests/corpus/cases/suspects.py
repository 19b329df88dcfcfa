"""Columns that are read well, and that should still be looked at before a training."""

import hashlib
import uuid

from tests.corpus.case import COLOURS, Case, Said, text

ROWS = 120
NUMBERS = {"x": "number", "y": "number"}
MEANT = [f"{i * 37 % 101 / 8},{i * i % 53 / 4}" for i in range(ROWS)]
SENTENCES = (
    "The pump was loud this morning, and the operator wrote {0} bar on the sheet beside the gate.",
    "Nothing unusual happened in hour {0}; the valve was opened, and then closed again by hand.",
    "A leak near flange {0} was repaired, and the seal was replaced by a new one of the same kind.",
)


def beside(name: str, cells: list[str]) -> list[str]:
    """The column with these cells, beside two numbers."""
    return [f"{name},x,y", *(f"{cell},{rest}" for cell, rest in zip(cells, MEANT, strict=True))]


def key(i: int) -> uuid.UUID:
    """A UUID as a random generator would make it."""
    return uuid.UUID(bytes=hashlib.sha256(bytes([i])).digest()[:16], version=4)


CASES = (
    Case(
        file="id_counts.csv",
        content=text(beside("customer_id", [str(10_001 + i) for i in range(ROWS)])),
        rows=ROWS,
        types={"customer_id": "number"} | NUMBERS,
        unused=frozenset({"customer_id"}),
        findings=[Said("identifier", "customer_id", fix=True)],
    ),
    Case(
        file="id_letters.csv",
        content=text(beside("order", [f"ORD-{i * 7919 % 99991:05}" for i in range(ROWS)])),
        rows=ROWS,
        types={"order": "category"} | NUMBERS,
        unused=frozenset({"order"}),
        findings=[Said("identifier", "order", fix=True)],
    ),
    Case(
        file="uuid.csv",
        content=text(beside("key", [str(key(i)) for i in range(ROWS)])),
        rows=ROWS,
        unused=frozenset({"key"}),
        findings=[Said("identifier", "key", fix=True)],
    ),
    Case(
        file="hashes.csv",
        content=text(
            beside("digest", [hashlib.sha256(bytes([i])).hexdigest() for i in range(ROWS)])
        ),
        rows=ROWS,
        unused=frozenset({"digest"}),
        findings=[Said("identifier", "digest", fix=True)],
    ),
    Case(
        file="constants.csv",
        content=text(
            [
                "x,unit,version,y",
                *(f"{row.split(',')[0]},mm,3,{row.split(',')[1]}" for row in MEANT),
            ]
        ),
        rows=ROWS,
        types={"x": "number", "unit": "category", "version": "number", "y": "number"},
        findings=[Said("constant", "unit"), Said("constant", "version")],
    ),
    Case(
        file="empty_column.csv",
        content=text(beside("remark", [""] * ROWS)),
        rows=ROWS,
        types={"remark": "number"} | NUMBERS,
        missing={"remark": ROWS},
        findings=[Said("constant", "remark")],
    ),
    Case(
        file="duplicate_column.csv",
        content=text(["x,x_again,y", *(f"{row.split(',')[0]},{row}" for row in MEANT)]),
        rows=ROWS,
        types={"x": "number", "x_again": "number", "y": "number"},
        findings=[Said("duplicate_column", "x_again")],
    ),
    Case(
        file="minus_999.csv",
        content=text(
            beside(
                "temperature", ["-999" if i % 17 == 3 else f"{i * 7 % 31}.5" for i in range(ROWS)]
            )
        ),
        rows=ROWS,
        types={"temperature": "number"} | NUMBERS,
        findings=[Said("sentinel", "temperature", 5, fix=True)],
    ),
    Case(
        file="large_sentinel.csv",
        content=text(
            beside("pressure", ["9999" if i % 17 == 3 else f"{i * 7 % 31}.5" for i in range(ROWS)])
        ),
        rows=ROWS,
        types={"pressure": "number"} | NUMBERS,
        findings=[Said("sentinel", "pressure", 5, fix=True)],
    ),
    Case(
        file="zip_codes.csv",
        content=text(beside("zip", [f"{(i % 12) * 8123 + 501:05}" for i in range(ROWS)])),
        rows=ROWS,
        types={"zip": "category"} | NUMBERS,
        values={"zip": ["00501", "08624"]},
        findings=[Said("codes", "zip", 2, fix=True)],
    ),
    Case(
        file="leading_zeros.csv",  # codes, not numbers
        content=text(beside("branch", [f"{i % 9:03}" for i in range(ROWS)])),
        rows=ROWS,
        types={"branch": "category"} | NUMBERS,
        values={"branch": ["000", "001"]},
        also=frozenset({"postal_code"}),
    ),
    Case(
        file="free_text.csv",
        content=text(beside("remark", [f'"{SENTENCES[i % 3].format(i)}"' for i in range(ROWS)])),
        rows=ROWS,
        types={"remark": "text"} | NUMBERS,
        unused=frozenset({"remark"}),
        findings=[Said("free_text", "remark")],
        also=frozenset({"identifier"}),
    ),
    Case(
        file="many_levels.csv",
        content=text(
            beside("street", [f"{COLOURS[i % 3]} street {i * 7 % 60}" for i in range(ROWS)])
        ),
        rows=ROWS,
        types={"street": "category"} | NUMBERS,
        findings=[Said("many_levels", "street")],
        also=frozenset({"identifier"}),
    ),
    Case(
        file="nothing_to_say.csv",  # a tidy file
        content=text(beside("colour", [COLOURS[i * i % 3] for i in range(ROWS)])),
        rows=ROWS,
        types={"colour": "category"} | NUMBERS,
        levels={"colour": {"red", "green"}},
    ),
)
