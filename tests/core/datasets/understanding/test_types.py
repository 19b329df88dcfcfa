"""Columns of texts: what they are, by tables of texts and the values that they mean."""

from typing import Any

import pytest

from tests.core.datasets.understanding.texts import read, values


@pytest.mark.parametrize(
    ("texts", "type_", "expected"),
    [
        (["1", "-2", None], "number", [1, -2, None]),
        (["1.5", "2e3", "NA"], "number", [1.5, 2000.0, None]),
        (["007", "123"], "category", ["007", "123"]),
        (["0x1A", "12"], "category", ["0x1A", "12"]),
        (["99999999999999999999", "1"], "number", [1e20, 1.0]),
        (["1234567890123456789", "1234567890123456780"], "category", None),
        (["true", "False", "", "TRUE"], "boolean", [True, False, None, True]),
        (["yes", "Y", "no", "N", "yes", "no"], "boolean", ["yes", "yes", "no", "no", "yes", "no"]),
        (["Ja", "Nein", None], "boolean", ["Ja", "Nein", None]),
        (["y", "y"], "category", ["y", "y"]),
        (["2020-02-29", None], "datetime", ["2020-02-29T00:00:00Z", None]),
        ([None, "nan"], "number", [None, None]),
        (["+491701234567", "+491701234568"], "category", None),
        (["1.2.3", "1.2.4"], "category", None),
        (["192.168.100.200", "192.168.100.201"], "category", None),
        (["1/2", "3/4"], "category", None),
        (["08:30", "09:15"], "category", None),
        (["May", "June"], "category", None),
        (["٣", "٤"], "number", [3, 4]),
        (["true", "false", "1"], "category", None),
    ],
)
def test_texts_become_what_they_mean(
    texts: list[str | None], type_: str, expected: list[Any] | None
) -> None:
    found = read(texts)
    assert found.profiles[0].type == found.readings[0].type == type_
    assert values(found) == (expected or texts)
