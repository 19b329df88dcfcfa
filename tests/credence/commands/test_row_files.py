from collections.abc import Iterable, Iterator

import pytest

from credence.commands.files import rows
from credence.commands.files.rows import BadRows, Rows, read_lines
from credence.types import Feature, Json

FEATURES: list[Feature] = [
    {"name": "size", "type": "number"},
    {"name": "new", "type": "boolean"},
    {"name": "kind", "type": "category"},
]


def rows_of(lines: Iterable[str]) -> Rows:
    return read_lines(lines, "csv", FEATURES)


def records(rows: Rows) -> list[Json]:
    columns = rows.all()
    values = zip(*(column.values for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]


def test_cells_take_the_type_of_their_feature() -> None:
    assert records(rows_of(["kind,size,new", "7,1e3,True", "b,-2,0"])) == [
        {"size": 1000.0, "new": True, "kind": "7"},
        {"size": -2.0, "new": False, "kind": "b"},
    ]


def test_an_empty_cell_is_missing() -> None:
    assert records(rows_of(["kind,size,new", ",,"])) == [{"size": None, "new": None, "kind": None}]


def test_other_columns_are_named_and_left_out() -> None:
    rows = rows_of(["id,size,new,kind,y", "1,2,true,a,3"])
    assert rows.ignored == ("id", "y")
    assert records(rows) == [{"size": 2.0, "new": True, "kind": "a"}]


def test_batches_keep_the_order_and_are_read_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "ROWS_PER_READ", 2)

    def lines() -> Iterator[str]:
        yield from ["size,new,kind", "1,1,a", "2,1,a", "3,1,a"]
        raise AssertionError("read too far")

    batch = next(rows_of(lines()).batches)
    assert batch["size"].values == [1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size,new,kind\n", "no rows below the header"),
        ("", "no rows: the first line must name the columns"),
        ("size,new\n1,1\n", "no column 'kind': there are size, new"),
        ("size,new,kind\n1,1\n", "row 1: 2 cells, but the header has 3"),
        ("size,new,kind\n1,1,a\nbig,1,a\n", "row 2, column 'size': 'big' is not a number"),
        ("size,new,kind\nnan,1,a\n", "leave the cell empty if it is missing"),
        ("size,new,kind\n1,perhaps,a\n", "'perhaps' is not one of true, 1, false, 0"),
    ],
)
def test_a_bad_row_is_named(text: str, message: str) -> None:
    with pytest.raises(BadRows, match=message):
        records(rows_of(text.splitlines()))


def test_a_tensor_does_not_fit_into_a_cell() -> None:
    with pytest.raises(BadRows, match="image is a tensor: predict such rows from Python"):
        read_lines(["image"], "csv", [{"name": "image", "type": "tensor"}])
