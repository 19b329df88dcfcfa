"""Lines with too many fields are counted before they are cut."""

import pytest

from core.datasets.columns.place import MAX_COLUMNS
from core.datasets.formats.delimited.dialect import Dialect
from core.datasets.formats.delimited.width import check_width
from core.exceptions import Invalid

COMMAS = "," * MAX_COLUMNS
CSV = Dialect(",", '"')


def test_a_line_with_too_many_fields_is_named() -> None:
    with pytest.raises(Invalid) as caught:
        check_width(f"a,b\n{COMMAS}", CSV)
    assert f"{MAX_COLUMNS + 1} columns in line 2: give at most" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"a,b\n{COMMAS[:-1]}\n",
        f'a,b\n1,"{COMMAS}"\n',
        f'a,b\n1,"he said ""{COMMAS}"""\n',
        f'a,b\n1,"first\n{COMMAS}\nlast"\n',
    ],
    ids=["as many as may be", "quoted", "doubled quotes", "within a quote of three lines"],
)
def test_delimiters_within_quotes_are_no_fields(text: str) -> None:
    check_width(text, CSV)
