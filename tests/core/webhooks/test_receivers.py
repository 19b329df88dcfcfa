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


def test_a_url_has_one_spelling() -> None:
    for url, spelled in {
        "HTTPS://Hooks.example.org:443/a?b=c": "https://hooks.example.org/a?b=c",
        "https://hooks.example.org?b=c": "https://hooks.example.org/?b=c",
        "http://receiver:0080/": "http://receiver/",
        "https://[2606:4700::1111]:8443/x": "https://[2606:4700::1111]:8443/x",
    }.items():
        assert str(parse(url)) == spelled


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://hooks.example.org/", "https://host/path"),
        ("hooks.example.org", "https://host/path"),
        ("https://hooks.example.org@169.254.169.254/", "user name or password"),
        ("https://hooks.example.org\\@evil.example/", "backslash"),
        ("https://hooks.example.org/\r\nHost: evil", "blank"),
        ("https://hooks.exämple.org/", "ASCII"),
        ("https://hooks.example.org/#a", "fragment"),
        ("https://hooks.example.org:65536/", "65536"),
        ("https://hooks.example.org:443:22/", "host"),
        ("https://hooks.example.org%2eevil/", "host"),
        ("https:///path", "host"),
        ("https://h/" + "a" * 2048, "2048"),
    ],
)
def test_other_spellings_are_refused(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(url)


def test_what_the_setting_lists_is_reached() -> None:
    for url in ("https://hooks.example.org:8443/a", "https://a.b.example.com/"):
        assert may_reach(url) is False
    for url in ("http://10.0.0.5:8080/a", "https://receiver:9443/", "http://[::1]:81/"):
        assert may_reach(url) is True


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
    ],
)
def test_what_it_does_not_list_is_not(url: str) -> None:
    with pytest.raises(Invalid, match="CREDENCE_WEBHOOKS"):
        may_reach(url)
    with pytest.raises(Invalid):
        Rules().check(parse(url))  # closed by default


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::ffff:169.254.169.254]"],
)
def test_a_star_stands_for_names_and_no_numbers(host: str) -> None:
    assert not may_reach("https://anything.example/", "*")
    with pytest.raises(Invalid, match="CREDENCE_WEBHOOKS"):
        may_reach(f"https://{host}/", "*")


@pytest.mark.parametrize("entry", ["a b/c", "hooks.*.org", "private+ftp://x", "private+http://x/y"])
def test_a_wrong_entry_is_refused_with_its_value(entry: str) -> None:
    with pytest.raises(ValueError, match=r"b/c|hooks|private"):
        read_rules(entry)
