"""A list that is cut says so."""

import pytest

from credence.commands.lists import shown


@pytest.mark.parametrize(
    ("limit", "as_json", "count", "is_said"),
    [
        (None, False, 20, True),
        (None, True, 51, False),
        (50, True, 50, True),
        (51, False, 51, False),
    ],
)
def test_a_list_that_is_cut_says_so(
    capsys: pytest.CaptureFixture[str], limit: int | None, as_json: bool, count: int, is_said: bool
) -> None:
    assert shown(iter(range(51)), limit, as_json=as_json) == list(range(count))
    assert ("--limit" in capsys.readouterr().err) == is_said
