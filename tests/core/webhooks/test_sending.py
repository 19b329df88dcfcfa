"""Deliveries in front of real receivers, of which some attack."""

import socket
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from core.exceptions import Invalid
from core.sources.places import pinned
from core.webhooks.deliveries import Answer, Attempt
from core.webhooks.receivers import Rules, parse, read_rules
from core.webhooks.sending import send
from core.webhooks.signing import new_secret
from tests.core.sources.certificates import certificate
from tests.core.webhooks.receiving import (
    Receiving,
    Respond,
    answer,
    drip,
    endless_body,
    endless_headers,
    endless_informing,
    receiver,
)

BODY = '{"type":"job.succeeded","data":{"id":"job_1 é"}}'
PUBLIC = "93.184.215.14"


@pytest.fixture
def receiving() -> Iterator[Receiving]:
    with receiver() as got:
        got.secret = new_secret()
        yield got


def attempt(url: str, secret: str = "") -> Attempt:
    return Attempt("msg_1", "hook_1", 1, url, secret or new_secret(), BODY)


def sent(receiving: Receiving, seconds: float = 120, path: str = "/hook") -> Answer:
    origin = f"http://127.0.0.1:{receiving.port}"
    rules = read_rules(f"private+{origin}")
    return send(attempt(origin + path, receiving.secret), rules, seconds)


def test_the_official_library_verifies_a_delivery(receiving: Receiving) -> None:
    got = sent(receiving, path="/hook?team=1")
    assert (got.status, got.error) == (204, None)
    assert receiving.messages == [
        ("msg_1", {"type": "job.succeeded", "data": {"id": "job_1 é"}}),
    ]
    headers = receiving.headers[0]
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"].startswith("Credence/")
    assert headers["Host"] == f"127.0.0.1:{receiving.port}"


@pytest.mark.parametrize("status", [301, 308, 400, 410, 503])
def test_redirects_and_refusals_are_failures(receiving: Receiving, status: int) -> None:
    elsewhere = "http://169.254.169.254/latest/meta-data"
    receiving.respond = partial(answer, status=status, Location=elsewhere)
    got = sent(receiving)
    assert got.status == status
    assert str(status) in str(got.error)
    assert len(receiving.bodies) == 1


@pytest.mark.parametrize("respond", [drip, endless_informing])
def test_a_slow_receiver_is_cut_off(receiving: Receiving, respond: Respond) -> None:
    receiving.respond = respond
    got = sent(receiving, seconds=0.5)
    assert (got.status, got.error) == (None, "the receiver does not answer within 0.5 s")


def test_endless_headers_are_a_failure(receiving: Receiving) -> None:
    receiving.respond = endless_headers
    got = sent(receiving)
    assert (got.status, got.error) == (None, "the host breaks the protocol (HTTPException)")


def test_an_endless_body_is_not_read(receiving: Receiving) -> None:
    receiving.respond = endless_body
    assert sent(receiving).status == 200


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_receiver_that_accepts_and_says_nothing_is_cut_off(scheme: str) -> None:
    """Also one whose handshake does not end."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        origin = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        got = send(attempt(origin), read_rules(f"private+{origin}"), 0.3)
    assert got.error == "the receiver does not answer within 0.3 s"


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    origin = f"http://127.0.0.1:{port}"
    got = send(attempt(origin), read_rules(f"private+{origin}"))
    assert (got.status, got.error) == (None, "connection refused")


class Names:
    """Answers of a name server: one list of addresses per question; the last one stays."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers, self.asked = list(answers), 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        found = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return found


METADATA = (["169.254.169.254"], ["fd00:ec2::254"], ["::ffff:169.254.169.254"])


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"], ["10.0.0.1"], ["100.100.100.200"], ["::1"], ["::ffff:127.0.0.1"],
        ["64:ff9b::a9fe:a9fe"], ["2002:7f00:1::"], ["0.0.0.0"], [PUBLIC, "10.0.0.1"],
        ["10.0.0.1", PUBLIC], *METADATA,
    ],
)  # fmt: skip
def test_inner_names_are_refused(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> None:
    """Not even an operator's own receiver is a cloud's metadata."""
    monkeypatch.setattr(pinned, "resolve", Names(addresses))
    monkeypatch.setattr(socket, "create_connection", _never)
    got = send(attempt("https://hooks.example.org/a"), read_rules("hooks.example.org"))
    assert "it is not connected to" in str(got.error)
    if addresses in METADATA:
        got = send(attempt("http://receiver:80/"), read_rules("private+http://receiver"))
        assert "it is not connected to" in str(got.error)


def test_a_name_that_changes_its_mind_leads_where_it_led(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is asked once; the connection goes to the address that was checked."""
    names = Names([PUBLIC], ["127.0.0.1"])
    connected: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        connected.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(pinned, "resolve", names)
    monkeypatch.setattr(socket, "create_connection", connect)
    got = send(attempt("https://hooks.example.org/a"), read_rules("hooks.example.org"))
    assert (names.asked, connected) == (1, [(PUBLIC, 443)])
    assert got.error == "connection refused"


def test_what_the_setting_does_not_list_any_more_is_not_reached(receiving: Receiving) -> None:
    url = f"http://127.0.0.1:{receiving.port}/"
    got = send(attempt(url, receiving.secret), read_rules("hooks.example.org"))
    assert "CREDENCE_WEBHOOKS" in str(got.error)
    assert receiving.bodies == []


def test_proxies_are_not_used(receiving: Receiving, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert sent(receiving).status == 204


def test_a_certificate_must_be_the_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = certificate(tmp_path)
    with receiver(made) as got:
        got.secret = new_secret()
        rules = read_rules(
            f"private+https://localhost:{got.port} private+https://127.0.0.1:{got.port}"
        )
        unknown = send(attempt(f"https://localhost:{got.port}/"), rules)
        assert unknown.error == "its certificate is not valid (self-signed certificate)"
        monkeypatch.setenv("SSL_CERT_FILE", str(made[0]))
        other = send(attempt(f"https://127.0.0.1:{got.port}/"), rules)
        assert "IP address mismatch" in str(other.error)
        assert got.bodies == []
        right = send(attempt(f"https://localhost:{got.port}/", got.secret), rules)
        assert (right.status, got.ids) == (204, ["msg_1"])


def _never(*_: object, **__: object) -> socket.socket:
    raise AssertionError("a connection to an address that was refused")


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
