"""Workbooks of Excel and OpenDocument."""

from datetime import date, datetime, time, timedelta

from core.datasets.files.options import DatasetOptions
from tests.corpus.case import PLAIN, PLAIN_TYPES, PLAIN_VALUES, Case, Said
from tests.corpus.workbooks import ods, xls, xlsx

AS_PLAIN = {"rows": 16, "types": PLAIN_TYPES, "values": PLAIN_VALUES}
SHEET = [list(PLAIN_TYPES), *PLAIN]
OTHER = [["a", "b"], *([i * 7 % 12, i * i % 9 + 0.5] for i in range(12))]
DAYS = [date(2021, 1, 28) + timedelta(days=17 * i) for i in range(16)]
DATED = [
    ["day", "moment", "paid", "y"],
    *(
        [day, datetime.combine(day, time(9, 30)), i % 3 == 0, i * i % 7 + 0.5]
        for i, day in enumerate(DAYS)
    ),
]
DATED_READ = {
    "rows": 16,
    "types": {"day": "datetime", "moment": "datetime", "paid": "boolean", "y": "number"},
    "values": {
        "day": [day.isoformat() for day in DAYS],
        "moment": [f"{day.isoformat()}T09:30:00" for day in DAYS],
        "paid": [True, False, False, True],
    },
}

CASES = (
    Case(
        file="workbook.xlsx", content=xlsx({"Data": SHEET}), reading={"sheet": "Data"}, **AS_PLAIN
    ),
    Case(file="workbook.xls", content=xls({"Data": SHEET}), reading={"sheet": "Data"}, **AS_PLAIN),
    Case(file="workbook.ods", content=ods({"Data": SHEET}), reading={"sheet": "Data"}, **AS_PLAIN),
    Case(
        file="two_sheets.xlsx",
        content=xlsx({"North": SHEET, "South": OTHER}),
        reading={"sheet": "North"},
        findings=[Said("sheets")],
        **AS_PLAIN,
    ),
    Case(
        file="second_sheet_given.xlsx",
        content=xlsx({"North": SHEET, "South": OTHER}),
        options=DatasetOptions(sheet="South"),
        rows=12,
        types={"a": "number", "b": "number"},
        values={"a": [0, 7, 2], "b": [0.5, 1.5, 4.5]},
        reading={"sheet": "South"},
    ),
    Case(
        file="unknown_sheet_given.xlsx",
        content=xlsx({"North": SHEET, "South": OTHER}),
        options=DatasetOptions(sheet="West"),
        refused=r"West.*North.*South",
    ),
    Case(
        file="title_rows.xlsx",
        content=xlsx(
            {"Data": [["Report of the station North"], ["made on 3 May 2021"], [], *SHEET]}
        ),
        **AS_PLAIN,
    ),
    Case(
        file="table_in_the_middle.ods",
        content=ods({"Data": [[], [], *([None, None, *row] for row in SHEET)]}),
        **AS_PLAIN,
    ),
    Case(file="dates.xlsx", content=xlsx({"Data": DATED}), **DATED_READ),
    Case(file="dates.xls", content=xls({"Data": DATED}), **DATED_READ),
    Case(file="dates.ods", content=ods({"Data": DATED}), **DATED_READ),
    Case(
        file="errors_in_cells.xlsx",
        content=xlsx(
            {
                "Data": [
                    ["ratio", "y"],
                    *(["#DIV/0!" if i % 25 == 7 else i * 37 % 61 + 0.5, i % 5] for i in range(50)),
                ]
            }
        ),
        rows=50,
        types={"ratio": "number", "y": "number"},
        missing={"ratio": 2},
        findings=[Said("mostly_numeric", "ratio", 9)],
    ),
    Case(
        file="numbers_as_text.xlsx",
        content=xlsx(
            {
                "Data": [
                    ["size", "y"],
                    *(
                        [str(i * 37 % 61 + 0.5) if i % 3 else i * 37 % 61 + 0.5, i % 5]
                        for i in range(30)
                    ),
                ]
            }
        ),
        rows=30,
        types={"size": "number", "y": "number"},
        values={"size": [0.5, 37.5, 13.5]},
    ),
    Case(
        file="dash_among_numbers.xlsx",
        content=xlsx(
            {
                "Data": [
                    ["x", "y"],
                    *(["-" if i == 30 else i * 37 % 61 + 0.25, i % 5] for i in range(60)),
                ]
            }
        ),
        rows=60,
        types={"x": "number", "y": "number"},
        missing={"x": 1},
        findings=[Said("mostly_numeric", "x", 32)],
    ),
    Case(
        file="zip_codes_as_text.xlsx",
        content=xlsx(
            {
                "Data": [
                    ["zip", "y"],
                    *([f"{i % 9 * 811 + 501:05}", i * 7 % 23 + 0.5] for i in range(30)),
                ]
            }
        ),
        rows=30,
        types={"zip": "category", "y": "number"},
        values={"zip": ["00501", "01312"]},
        also=frozenset({"postal_code"}),
    ),
    Case(file="workbook_named.csv", content=xlsx({"Data": SHEET}), **AS_PLAIN),
)
