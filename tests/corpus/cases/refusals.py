"""Files that no reading can make sense of."""

import random

from core.datasets.files.options import DatasetOptions
from core.datasets.understanding.fixes import ColumnFix
from tests.corpus.case import Case, plain, text

PAGE = """<!DOCTYPE html>
<html><head><title>Sign in</title></head>
<body><p>Please sign in, then download the file.</p></body></html>
"""
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<<>>\n%%EOF\n"
PICTURE = b"\x89PNG\r\n\x1a\n" + random.Random(0).randbytes(200)
LINES = plain(",")

CASES = (
    Case(file="page_named.csv", content=PAGE.encode, refused=r"(?i)html"),
    Case(file="document_named.csv", content=lambda: PDF, refused=r"(?i)pdf"),
    Case(file="picture_named.csv", content=lambda: PICTURE, refused=r"(?i)png|picture|image"),
    Case(file="empty.csv", content=lambda: b"", refused=r"empty"),
    Case(file="only_line_ends.csv", content=lambda: b"\n\n\n", refused=r"empty|no rows"),
    Case(file="only_a_header.csv", content=text(LINES[:1]), refused=r"no rows|at least one"),
    Case(
        file="pickle.pkl",
        content=lambda: (
            b"\x80\x04\x95\x1a\0\0\0\0\0\0\0}\x94(\x8c\x01a\x94K\x01\x8c\x01b\x94K\x02u."
        ),
        refused=r"(?i)pickle|not .*(read|known)",
    ),
    Case(
        file="wrong_encoding_given.csv",
        content=text(["größe,y", "1,2", "3,4"], "latin-1"),
        options=DatasetOptions(encoding="utf-8"),
        refused=r"line 1\b",
    ),
    Case(
        file="unknown_encoding_given.csv",
        content=text(LINES),
        options=DatasetOptions(encoding="utf-99"),
        refused=r"utf-99",
    ),
    Case(
        file="fix_of_no_column.csv",
        content=text(LINES),
        fixes=(ColumnFix(name="colur", type="category"),),
        refused=r"colur.*colour",
    ),
    Case(
        file="fix_that_cannot_be.csv",
        content=text(LINES),
        fixes=(ColumnFix(name="colour", type="number"),),
        refused=r"colour.*red|red.*colour",
    ),
)
