"""Which URIs are one thing, and which may be read."""

import pytest

from core.exceptions import Invalid
from core.sources.patterns import pattern
from core.sources.rules import Rules, read_rules
from core.sources.uris import parse

RULES = read_rules("s3://lake/sales/, https://data.example.org/open/ file:///srv/data/,shop")


@pytest.mark.parametrize(
    "uri",
    [
        "s3://lake/sales/2024/a.parquet",
        "s3://lake/sales/**/*.parquet",
        "https://data.example.org/open/a.csv",
        "HTTPS://DATA.example.ORG:443/open/a%20b.csv",
        "file:///srv/data/*/a.csv",
    ],
)
def test_what_lies_below_a_folder_of_the_setting_may_be_read(uri: str) -> None:
    RULES.check_uri(parse(uri))


@pytest.mark.parametrize(
    "uri",
    [
        "s3://lake/sales",  # a file beside the folder
        "s3://lake/sales-secret/a.parquet",
        "s3://lake/*/a.parquet",  # could be any folder
        "s3://lake/**/a.parquet",
        "s3://lake/SALES/a.parquet",  # keys count case
        "https://data.example.org:8443/open/a.csv",
        "https://data.example.org.evil.com/open/a.csv",
        "file:///srv/database/a.csv",
        "file:///etc/passwd",
    ],
)
def test_anything_else_is_refused_with_the_setting_to_change(uri: str) -> None:
    with pytest.raises(Invalid, match="CREDENCE_SOURCES"):
        RULES.check_uri(parse(uri))


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("s3://lake/sales/../keys/a", "'..'"),
        ("file:///srv/data/../../etc/passwd", "'..'"),
        ("file:///srv/data/%2e%2e/%2e%2e/etc/passwd", "'..'"),
        ("file:///srv/data/..%2f..%2fetc/passwd", "'%2f'"),
        ("file:///srv/data/%252e%252e/etc/passwd", "'%25'"),
        ("file:///srv/data/a%00.csv", "control"),
        ("file:///srv/data//etc/passwd", "//"),
        ("file://server/srv/data/a", "file:///"),
        ("file:///srv/data\\..\\a", "backslash"),
        ("https://data.example.org@evil.com/open/a", "user name"),
        ("https://data.example.org/open/a?key=1", "query"),
        ("https://[::1]/open/a", "no host name"),
        ("https://dаta.example.org/open/a", "no host name"),  # a Cyrillic а
        ("http://data.example.org/open/a", "https"),
        ("/etc/passwd", "file:///"),
        ("s3://lake/sales/a\nb", "control"),
        (" s3://lake/sales/a", "blanks"),
    ],
)
def test_a_second_spelling_is_refused_by_name(uri: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".*") as refused:
        RULES.check_uri(parse(uri))
    assert reason in str(refused.value)


def test_nothing_is_open_without_the_setting() -> None:
    with pytest.raises(Invalid, match="sources are closed"):
        Rules().check_uri(parse("s3://lake/a"))
    with pytest.raises(Invalid, match="CREDENCE_SOURCES has to list the name shop"):
        read_rules("s3://lake/").check_database("shop")
    RULES.check_database("shop")


@pytest.mark.parametrize("entry", ["s3://lake/*/", "http://a/", "a b$", "file:///a/../b/"])
def test_a_wrong_setting_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match=r"'"):
        read_rules(entry)


@pytest.mark.parametrize(
    ("uri", "path", "expected"),
    [
        ("s3://bkt/a/*.csv", "a/x.csv", True),
        ("s3://bkt/a/*.csv", "a/b/x.csv", False),
        ("s3://bkt/a/**/*.csv", "a/b/c/x.csv", True),
        ("s3://bkt/a/", "a/b/c", True),
        ("s3://bkt/a/[.]/x", "a/./x", False),  # brackets stand for themselves
        ("s3://bkt/a/x.csv", "a/xzcsv", False),
    ],
)
def test_a_pattern_stays_within_a_name(uri: str, path: str, expected: bool) -> None:
    assert (pattern(parse(uri)).fullmatch(path) is not None) == expected
