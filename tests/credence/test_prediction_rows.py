from collections.abc import Iterator

import pytest

from credence.prediction_rows import BadRows, read_rows
from credence.types import Feature, Json

FEATURES: list[Feature] = [
    {"name": "size", "type": "number"},
    {"name": "new", "type": "boolean"},
    {"name": "kind", "type": "category"},
]


def records(text: str) -> list[Json]:
    return list(read_rows(text.splitlines(), FEATURES).records)


def test_cells_take_the_type_of_their_feature() -> None:
    assert records("kind,size,new\n7,1e3,True\nb,-2,0\n") == [
        {"size": 1000.0, "new": True, "kind": "7"},
        {"size": -2.0, "new": False, "kind": "b"},
    ]


def test_an_empty_cell_is_missing() -> None:
    assert records("kind,size,new\n,,\n") == [{"size": None, "new": None, "kind": None}]


def test_other_columns_are_named_and_left_out() -> None:
    rows = read_rows(["id,size,new,kind,y", "1,2,true,a,3"], FEATURES)
    assert rows.ignored == ("id", "y")
    assert list(rows.records) == [{"size": 2.0, "new": True, "kind": "a"}]


def test_batches_keep_the_order_and_are_read_as_needed() -> None:
    def lines() -> Iterator[str]:
        yield from ["size,new,kind", "1,1,a", "2,1,a", "3,1,a"]
        raise AssertionError("read too far")

    batch = next(read_rows(lines(), FEATURES).batches(2))
    assert [row["size"] for row in batch] == [1.0, 2.0]


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
        records(text)


def test_a_tensor_does_not_fit_into_a_cell() -> None:
    with pytest.raises(BadRows, match="image is a tensor: predict such rows from Python"):
        read_rows(["image"], [{"name": "image", "type": "tensor"}])
