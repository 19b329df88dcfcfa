"""Lines that are no rows, line ends, and rows of different lengths."""

from core.datasets.files.options import DatasetOptions
from tests.corpus.case import PLAIN_TYPES, PLAIN_VALUES, Case, Said, plain, text

AS_PLAIN = {"rows": 16, "types": PLAIN_TYPES, "values": PLAIN_VALUES}
LINES = plain(",")
RAGGED = ["a,b,c", "1,2,3", "4,5,6", "7,8", "1,3,5", "2,4,6"]

CASES = (
    Case(
        file="preamble.csv",
        content=text(["Report of the station North", "made on 3 May 2021", "", *LINES]),
        **AS_PLAIN,
    ),
    Case(
        file="preamble_skip_given.csv",
        content=text(["one,two", "three", *LINES]),
        options=DatasetOptions(skip=2),
        **AS_PLAIN,
    ),
    Case(
        file="comments_above.csv",
        content=text(["# made by a sensor", "# unit: mm, local time", *LINES]),
        reading={"comment": "#"},
        **AS_PLAIN,
    ),
    Case(
        file="comments_between_given.csv",
        content=text([*LINES[:5], "% calibrated here", *LINES[5:]]),
        options=DatasetOptions(comment="%"),
        **AS_PLAIN,
    ),
    Case(
        file="number_signs_inside_text.csv",
        content=text(
            ["size,item,y", *(f"{i * 7 % 12}.5,#{i % 3} item,{i % 5}" for i in range(12))]
        ),
        rows=12,
        types={"size": "number", "item": "category", "y": "number"},
        levels={"item": {"#0 item", "#1 item", "#2 item"}},
    ),
    Case(
        file="blank_lines.csv",
        content=text([LINES[0], "", *LINES[1:8], "", "", *LINES[8:], ""]),
        **AS_PLAIN,
    ),
    Case(file="windows_line_ends.csv", content=text(LINES, end="\r\n"), **AS_PLAIN),
    Case(file="old_mac_line_ends.csv", content=text(LINES, end="\r"), **AS_PLAIN),
    Case(
        file="mixed_line_ends.csv",
        content=lambda: "".join(
            line + ("\r\n" if i % 2 else "\n") for i, line in enumerate(LINES)
        ).encode(),
        **AS_PLAIN,
    ),
    Case(file="no_last_line_end.csv", content=lambda: "\n".join(LINES).encode(), **AS_PLAIN),
    Case(
        file="empty_rows_of_a_spreadsheet.csv",
        content=text([*LINES, ",,", ",,", ",,"]),
        findings=[Said("lines_left_out")],
        **AS_PLAIN,
    ),
    Case(file="ragged_short.csv", content=text(RAGGED), refused=r"line 4\b.*\b2\b.*\b3\b"),
    Case(
        file="ragged_long.csv",
        content=text([*RAGGED[:3], "7,8,9,10", *RAGGED[4:]]),
        refused=r"line 4\b.*\b4\b.*\b3\b",
    ),
    Case(
        file="footer.csv",
        content=text([*LINES, "Source: the office of statistics"]),
        findings=[Said("lines_left_out")],
        **AS_PLAIN,
    ),
    Case(
        file="quote_not_closed.csv",
        content=text([*LINES[:6], '1.25,"red,4', *LINES[6:]]),
        refused=r"line 7\b.*quote=",
    ),
)
