"""Delimiters and quotes."""

from core.datasets.files.options import DatasetOptions
from tests.corpus.case import PLAIN, PLAIN_TYPES, PLAIN_VALUES, Case, plain, text

AS_PLAIN = {"rows": 16, "types": PLAIN_TYPES, "values": PLAIN_VALUES}
REMARKS = ("first\nsecond", "one, line")
PLACES = ["Oslo, Norway", "Rome, Italy", "Lima, Peru", "Oslo, Norway"]


def quoted(mark: str) -> list[str]:
    """A row per place, whose comma is between quotes."""
    rows = [f"{i * 7 % 12}.5,{mark}{PLACES[i % 4]}{mark},{i % 5}" for i in range(12)]
    return ["size,place,y", *rows]


PLACES_READ = {
    "rows": 12,
    "types": {"size": "number", "place": "category", "y": "number"},
    "values": {"size": [0.5, 7.5, 2.5], "place": PLACES},
}

CASES = (
    Case(
        file="semicolon.csv",
        content=text(plain(";")),
        reading={"delimiter": ";", "header": True},
        **AS_PLAIN,
    ),
    Case(file="tab.csv", content=text(plain("\t")), reading={"delimiter": "\t"}, **AS_PLAIN),
    Case(file="tab.tsv", content=text(plain("\t")), reading={"delimiter": "\t"}, **AS_PLAIN),
    Case(file="pipe.csv", content=text(plain("|")), reading={"delimiter": "|"}, **AS_PLAIN),
    Case(
        file="caret_given.csv",
        content=text(plain("^")),
        options=DatasetOptions(delimiter="^"),
        reading={"delimiter": "^"},
        **AS_PLAIN,
    ),
    Case(
        file="sep_line_of_excel.csv",
        content=text(["sep=;", *plain(";")], end="\r\n"),
        reading={"delimiter": ";"},
        **AS_PLAIN,
    ),
    Case(file="quoted_commas.csv", content=text(quoted('"')), **PLACES_READ),
    Case(
        file="single_quotes.csv", content=text(quoted("'")), reading={"quote": "'"}, **PLACES_READ
    ),
    Case(
        file="quoted_line_breaks.csv",
        content=text(
            [
                "size,remark,y",
                *(f'{i * 7 % 12}.5,"{REMARKS[i % 3 == 0]}",{i % 5}' for i in range(12)),
            ]
        ),
        rows=12,
        types={"size": "number", "remark": "category", "y": "number"},
        levels={"remark": set(REMARKS)},
    ),
    Case(
        file="doubled_quotes.csv",
        content=text(
            [
                "size,screen,y",
                *(
                    f'{i * 7 % 12}.5,"24 ""{["wide", "narrow"][i % 3 == 0]}""",{i % 5}'
                    for i in range(12)
                ),
            ]
        ),
        rows=12,
        types={"size": "number", "screen": "category", "y": "number"},
        levels={"screen": {'24 "wide"', '24 "narrow"'}},
    ),
    Case(
        file="everything_quoted.csv",
        content=text([",".join(f'"{cell}"' for cell in line.split(",")) for line in plain(",")]),
        **AS_PLAIN,
    ),
    Case(
        file="blanks_after_commas.csv",
        content=text([line.replace(",", ", ") for line in plain(",")]),
        **AS_PLAIN,
    ),
    Case(
        file="semicolons_inside_text.csv",
        content=text(
            [
                "size,tags,y",
                *(f"{i}.5,a;b;c,{i % 5}" if i % 2 else f"{i}.5,a;b,{i % 5}" for i in range(12)),
            ]
        ),
        rows=12,
        types={"size": "number", "tags": "category", "y": "number"},
        levels={"tags": {"a;b;c", "a;b"}},
        reading={"delimiter": ","},
    ),
    Case(
        file="trailing_semicolons.csv",
        content=text([f"{line};" for line in plain(";")]),
        **AS_PLAIN,
    ),
    Case(
        file="aligned_by_blanks.dat",
        content=text(
            [
                "size  colour     y",
                *(f"{size:<6.2f}{colour:<8}{y:>4}" for size, colour, y in PLAIN),
            ]
        ),
        **AS_PLAIN,
    ),
    Case(
        file="one_column.csv",
        content=text(["y", *(f"{7 * i % 19}.5" for i in range(20))]),
        rows=20,
        types={"y": "number"},
        values={"y": [0.5, 7.5, 14.5]},
    ),
)
