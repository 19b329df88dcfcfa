"""Headers, names, and columns that only number the rows."""

from core.datasets.files.options import DatasetOptions
from tests.corpus.case import PLAIN, PLAIN_TYPES, PLAIN_VALUES, Case, Said, plain, text

AS_PLAIN = {"rows": 16, "types": PLAIN_TYPES, "values": PLAIN_VALUES}
LINES = plain(",")

CASES = (
    Case(
        file="header_missing.csv",
        content=text([f"{i * 7 % 20}.25,{i * i % 9},{i * 3 % 7}.5" for i in range(20)]),
        rows=20,
        types={"column_1": "number", "column_2": "number", "column_3": "number"},
        values={"column_1": [0.25, 7.25], "column_3": [0.5, 3.5]},
        reading={"header": False},
        findings=[Said("header_missing")],
    ),
    Case(
        file="header_missing_with_words.csv",
        content=text(LINES[1:]),
        rows=16,
        types={"column_1": "number", "column_2": "category", "column_3": "number"},
        reading={"header": False},
        findings=[Said("header_missing")],
    ),
    Case(
        file="header_missing_said.csv",
        content=text([f"a{i % 3},b{i % 2}" for i in range(12)]),
        options=DatasetOptions(header=False),
        rows=12,
        types={"column_1": "category", "column_2": "category"},
        quiet=frozenset({"header_missing"}),
    ),
    Case(
        file="header_of_words_over_words.csv",
        content=text(
            ["kind,size", *(f"k{i % 3},{'small' if i % 4 else 'large'}" for i in range(16))]
        ),
        rows=16,
        types={"kind": "category", "size": "category"},
        reading={"header": True},
    ),
    Case(
        file="years_as_names.csv",
        content=text(
            [
                "country,2019,2020,2021",
                *(f"C{i % 4},{i}.5,{i * 3 % 7}.25,{i * i % 11}" for i in range(12)),
            ]
        ),
        findings=[Said("names", fix=True)],  # a guess: another table may begin so
        rows=12,
        types={"country": "category", "2019": "number", "2020": "number", "2021": "number"},
        values={"2019": [0.5, 1.5]},
    ),
    Case(
        file="index_of_pandas.csv",
        content=text([f"{'' if not i else i - 1},{line}" for i, line in enumerate(LINES)]),
        reading={"index": True},
        **AS_PLAIN,
    ),
    Case(
        file="row_names_of_r.csv",
        content=text(
            [
                '"","size","colour","y"',
                *(
                    f'"{i}",{size:.2f},"{colour}",{y}'
                    for i, (size, colour, y) in enumerate(PLAIN, 1)
                ),
            ]
        ),
        reading={"index": True},
        **AS_PLAIN,
    ),
    Case(
        file="row_names_without_a_name.tsv",  # as R's write.table writes by default
        content=text(
            [
                "size\tcolour\ty",
                *(f"r{i}\t{size}\t{colour}\t{y}" for i, (size, colour, y) in enumerate(PLAIN, 1)),
            ]
        ),
        rows=16,
        types={"row": "category"} | PLAIN_TYPES,
        values=PLAIN_VALUES,
        unused=frozenset({"row"}),
        findings=[Said("index", "row"), Said("identifier", "row", 2)],
    ),
    Case(
        file="duplicate_names.csv",
        content=text(["x,x,y", *(f"{i * 7 % 12}.5,{i * i % 9},{i % 5}" for i in range(12))]),
        rows=12,
        types={"x": "number", "x_2": "number", "y": "number"},
        findings=[Said("names")],
    ),
    Case(
        file="empty_name.csv",
        content=text(["x,,y", *(f"{i * 7 % 12}.5,{i * i % 9}.25,{i % 5}" for i in range(12))]),
        rows=12,
        types={"x": "number", "column_2": "number", "y": "number"},
        findings=[Said("names")],
    ),
    Case(
        file="blanks_around_names.csv",
        content=text([" size , colour,y  ", *LINES[1:]]),
        **AS_PLAIN,
    ),
    Case(
        file="units_below_the_header.csv",
        content=text(
            ["mass,length,y", "kg,m,", *(f"{i * 7 % 20}.5,{i * i % 9},{i % 5}" for i in range(20))]
        ),
        rows=20,
        types={"mass": "number", "length": "number", "y": "number"},
        findings=[Said("lines_left_out")],
    ),
)
