"""Names, cursors and limits: what is refused, and by which path."""

import pytest

from core.exceptions import Invalid
from core.names import check_alias, check_model_name, check_name
from core.paging import (
    MAX_LIMIT,
    Page,
    check_limit,
    decode_cursor,
    decode_number,
    encode_cursor,
    page_of,
)


def test_model_names_of_the_contract() -> None:
    for name in ("a", "concrete", "0.9-rc_1", "x" * 63):
        assert check_model_name(name) == name


@pytest.mark.parametrize("name", ["", "A", "-a", ".a", "a/b", "x" * 64, "a\n", "ä", "a\x00"])
def test_other_model_names_are_refused(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_model_name(name)
    assert refused.value.errors[0][0] == "/model"


def test_an_alias_is_not_a_number() -> None:
    assert check_alias("v3") == "v3"
    with pytest.raises(Invalid):
        check_alias("3")


def test_free_names_are_free() -> None:
    for name in ("Concrete, UCI", "ünïcode", "a/b", "x" * 256, "🙂"):
        assert check_name(name) == name


@pytest.mark.parametrize("name", ["  ", "x" * 257, "a\nb", "a\x00", "\x9f", "\u2028b", "\ud800b"])
def test_names_that_cannot_be_written_down_are_refused(name: str) -> None:
    with pytest.raises(Invalid):
        check_name(name)


def test_a_cursor_goes_back_to_its_list() -> None:
    assert decode_cursor("models", encode_cursor("models", "concrete:x")) == "concrete:x"
    assert decode_number("jobs", encode_cursor("jobs", 17)) == 17


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "****",
        "ü",
        "a" * 10_000,
        encode_cursor("datasets", 3),
        encode_cursor("jobs", -1),
        encode_cursor("jobs", "1e3"),
        encode_cursor("jobs", 10**18),
        encode_cursor("jobs", 3) + "=",
    ],
)
def test_any_other_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(Invalid) as refused:
        decode_number("jobs", cursor)
    assert refused.value.errors[0][0] == "cursor"
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("limit", [0, MAX_LIMIT + 1])
def test_a_limit_is_not_clipped(limit: int) -> None:
    with pytest.raises(Invalid, match=f"{limit} is out of range: give 1 to 1000"):
        check_limit(limit)


def test_the_last_page_has_no_cursor() -> None:
    assert page_of("jobs", ["a", "b"], [9, 8], limit=2) == Page(["a", "b"], None)
    more = page_of("jobs", ["a", "b", "c"], [9, 8, 7], limit=2)
    assert more == Page(["a", "b"], encode_cursor("jobs", 8))
