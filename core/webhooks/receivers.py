"""The URLs of receivers, strictly, and `CREDENCE_WEBHOOKS`, which says who may be one.

The setting is closed by default: a service that posts wherever it is told is a way into its
operator's network. Its entries, separated by commas or blanks:

* `hooks.example.org`, `hooks.example.org:8443`: a host, by HTTPS, at a public address
* `*.example.org`, `*`: all names below a domain, or all names, at port 443
* `private+https://receiver:8443`, `private+http://receiver:8080`: a receiver of the operator's own,
  which may have a private address, and with `http` needs no certificate
"""

import re
from dataclasses import dataclass
from typing import Literal

from core.exceptions import Invalid

SETTING = "CREDENCE_WEBHOOKS"
MAX_URL = 2048
HTTPS_PORT = 443

_PRIVATE = "private+"
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<target>.*)")
_NAME = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST = rf"{_NAME}(\.{_NAME})*|\[[0-9a-f:.]{{2,45}}\]"
_AUTHORITY = re.compile(rf"(?P<host>{_HOST})(:(?P<port>[0-9]{{1,5}}))?")
_WILDCARD = re.compile(rf"\*(\.{_NAME})*")

Scheme = Literal["http", "https"]


@dataclass(frozen=True)
class Receiver:
    """A receiver's URL: `target` is the path with the query, which may be a secret of the owner."""

    scheme: Scheme
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Host and port, as the HTTP header `Host` has them."""
        default = HTTPS_PORT if self.scheme == "https" else 80
        return self.host if self.port == default else f"{self.host}:{self.port}"

    @property
    def is_address(self) -> bool:
        """Whether the host is a number, in any of its spellings, and no name."""
        return self.host.startswith("[") or self.host.rpartition(".")[2][0].isdecimal()

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


@dataclass(frozen=True)
class Entry:
    """An entry of the setting; a `host` that begins with `*` stands for many."""

    scheme: Scheme
    host: str
    port: int
    private: bool

    def covers(self, receiver: Receiver) -> bool:
        """Whether this entry lets a receiver be reached."""
        if (self.scheme, self.port) != (receiver.scheme, receiver.port):
            return False
        if not self.host.startswith("*"):
            return self.host == receiver.host
        return not receiver.is_address and receiver.host.endswith(self.host[1:])


@dataclass(frozen=True)
class Rules:
    """The receivers that may be reached."""

    entries: tuple[Entry, ...] = ()

    def check(self, receiver: Receiver) -> bool:
        """Whether the receiver may have a private address.

        Raises:
            Invalid: it may not be reached; the message names the setting.
        """
        covering = [entry for entry in self.entries if entry.covers(receiver)]
        if not covering:
            closed = "" if self.entries else "webhooks are closed; "
            entry = receiver.authority if receiver.scheme == "https" else _private(receiver)
            raise Invalid(
                [("/url", f"{closed}the operator's setting {SETTING} has to list {entry}")]
            )
        return any(entry.private for entry in covering)


def parse(url: str) -> Receiver:
    """The receiver of a URL.

    Raises:
        ValueError: it has another scheme, or a spelling that is refused; the message says which.
    """
    if len(url) > MAX_URL:
        raise ValueError(f"has {len(url)} characters: give at most {MAX_URL}")
    if not (url.isascii() and url.isprintable()) or " " in url or "\\" in url:
        raise ValueError("has a blank, a backslash or a character beyond ASCII: encode it")
    match = _URL.fullmatch(url)
    scheme = match["scheme"].lower() if match else ""
    if match is None or scheme not in ("http", "https"):
        raise ValueError("is no URL of a receiver: give https://host/path")
    if "@" in match["authority"]:
        raise ValueError("has a user name or password: leave it out, deliveries are signed")
    if "#" in match["target"]:
        raise ValueError("has a fragment: leave out # and what follows")
    host, port = _authority(match["authority"], scheme)
    target = match["target"]
    return Receiver(
        "https" if scheme == "https" else "http",
        host,
        port,
        target if target.startswith("/") else f"/{target}",
    )


def read_rules(text: str) -> Rules:
    """The rules that a setting writes.

    Raises:
        ValueError: an entry is not one; the message says which.
    """
    return Rules(tuple(_entry(entry) for entry in re.split(r"[,\s]+", text) if entry))


def _entry(text: str) -> Entry:
    if text.startswith(_PRIVATE):
        try:
            receiver = parse(text.removeprefix(_PRIVATE))
        except ValueError as error:
            raise ValueError(f"{text!r} {error}") from error
        if receiver.target != "/":
            raise ValueError(f"{text!r} has a path: give host and port only")
        return Entry(receiver.scheme, receiver.host, receiver.port, private=True)
    if _WILDCARD.fullmatch(text.lower()):
        return Entry("https", text.lower(), HTTPS_PORT, private=False)
    try:
        host, port = _authority(text, "https")
    except ValueError:
        raise ValueError(
            f"{text!r} is no receiver: give a host such as hooks.example.org or *.example.org, or "
            "private+http://host:port for one of your own"
        ) from None
    return Entry("https", host, port, private=False)


def _authority(text: str, scheme: str) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(text.lower())
    if match is None:
        raise ValueError(f"has {text!r} as its host: give https://host/path")
    port = int(match["port"]) if match["port"] else (HTTPS_PORT if scheme == "https" else 80)
    if not 1 <= port <= 65_535:
        raise ValueError(f"has the port {port}: give 1 to 65535")
    return match["host"], port


def _private(receiver: Receiver) -> str:
    return f"{_PRIVATE}http://{receiver.authority} (without TLS: only for receivers of its own)"
