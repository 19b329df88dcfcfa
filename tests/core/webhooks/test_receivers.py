"""URLs of receivers have one spelling, and reach what the operator's setting lists."""

import pytest

from core.exceptions import Invalid
from core.webhooks.receivers import Rules, parse, read_rules

RULES = (
    "hooks.example.org, hooks.example.org:8443 *.example.com private+http://10.0.0.5:8080,"
    "private+https://receiver:9443 private+http://[::1]:81"
)


def may_reach(url: str, rules: str = RULES) -> bool:
    """Whether the receiver may have a private address. Raises `Invalid` if not listed."""
    return read_rules(rules).check(parse(url))


@pytest.mark.parametrize(
    ("url", "spelled"),
    [
        ("https://Hooks.Example.org", "https://hooks.example.org/"),
        ("HTTPS://hooks.example.org:443/a?b=c", "https://hooks.example.org/a?b=c"),
        ("https://hooks.example.org?b=c", "https://hooks.example.org/?b=c"),
        ("http://receiver:0080/", "http://receiver/"),
        ("https://[2606:4700::1111]:8443/x", "https://[2606:4700::1111]:8443/x"),
    ],
)
def test_a_url_has_one_spelling(url: str, spelled: str) -> None:
    assert str(parse(url)) == spelled


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://hooks.example.org/", "give https://host/path"),
        ("hooks.example.org", "give https://host/path"),
        ("https://me:word@hooks.example.org/", "has a user name or password"),
        ("https://hooks.example.org@169.254.169.254/", "has a user name or password"),
        ("https://hooks.example.org\\@evil.example/", "has a blank, a backslash"),
        ("https://hooks.example.org/ a", "has a blank"),
        ("https://hooks.example.org/\r\nHost: evil", "has a blank"),
        ("https://hooks.exämple.org/", "beyond ASCII"),
        ("https://hooks.example.org/#a", "has a fragment"),
        ("https://hooks.example.org:0/", "has the port 0"),
        ("https://hooks.example.org:65536/", "has the port 65536"),
        ("https://hooks.example.org:/", "as its host"),
        ("https://hooks.example.org:443:22/", "as its host"),
        ("https://hooks.example.org%2eevil/", "as its host"),
        ("https://hooks..example.org/", "as its host"),
        ("https:///path", "has '' as its host"),
        ("https://h/" + "a" * 2048, "give at most 2048"),
    ],
)
def test_other_spellings_are_refused_by_name(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as refused:
        parse(url)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("https://hooks.example.org/a", False),
        ("https://hooks.example.org:8443/a", False),
        ("https://a.example.com/", False),
        ("https://a.b.example.com/", False),
        ("http://10.0.0.5:8080/a", True),
        ("https://receiver:9443/", True),
        ("http://[::1]:81/", True),
    ],
)
def test_what_the_setting_lists_is_reached(url: str, private: bool) -> None:
    assert may_reach(url) is private


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/a",  # not encrypted
        "https://hooks.example.org:22/a",
        "https://evil-hooks.example.org/",
        "https://hooks.example.org.evil.test/",
        "https://example.com/",
        "https://a.example.com:8443/",
        "https://notexample.com/",
        "https://10.0.0.5:8080/",
        "http://10.0.0.5/",
        "http://receiver:9443/",
        "https://127.0.0.1/",
    ],
)
def test_what_it_does_not_list_is_not(url: str) -> None:
    with pytest.raises(Invalid, match="the operator's setting CREDENCE_WEBHOOKS has to list"):
        may_reach(url)


def test_it_is_closed_by_default() -> None:
    with pytest.raises(Invalid, match=r"webhooks are closed; .* has to list hooks\.example\.org$"):
        Rules().check(parse("https://hooks.example.org/"))
    with pytest.raises(Invalid, match=r"has to list private\+http://receiver:8080"):
        Rules().check(parse("http://receiver:8080/"))


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/", "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/",
        "https://127.1/", "https://[::1]/", "https://[::ffff:169.254.169.254]/",
    ],
)  # fmt: skip
def test_a_star_stands_for_names_and_no_numbers(url: str) -> None:
    assert not may_reach("https://anything.example/", "*")
    with pytest.raises(Invalid, match="CREDENCE_WEBHOOKS"):
        may_reach(url, "*")


@pytest.mark.parametrize(
    "entry",
    [
        "https://hooks.example.org",
        "a b/c",
        "hooks.*.org",
        "private+ftp://x",
        "private+http://x/y",
        "é",
    ],
)
def test_a_wrong_entry_is_refused_with_its_value(entry: str) -> None:
    with pytest.raises(ValueError, match=r"b/c|hooks|private|é"):
        read_rules(entry)
