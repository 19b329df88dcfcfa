"""The names by which a client may call the service, in the header `Host`.

A web page can let a name of its own lead to this machine (DNS rebinding); the browser then takes
this service for a part of that page's site. Only `Host` shows the name. Browsers look up no
address, so an address in `Host` is no such name.
"""

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache

from core.exceptions import NotParseable, WrongHost

ANY = "*"
LOOPBACK = "localhost"
PATTERN = re.compile(r"(?:\*\.)?[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?")
HEADER = re.compile(r"(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]{0,5})?")


class AllowedHosts:
    """The names in `CREDENCE_ALLOWED_HOSTS`, the bound address, and this machine for itself.

    Args:
        names: as in the setting: names, addresses, `*.example.com`, or `*` for every name.
        bound_to: the address or name on which the service listens.
    """

    def __init__(self, names: Iterable[str], bound_to: str) -> None:
        self._names = {_plain(name) for name in (*names, bound_to)}
        self._suffixes = tuple(name[1:] for name in self._names if name.startswith("*."))

    def check(self, given: list[bytes], local: str | None, *, is_probe: bool = False) -> None:
        """Check the values of all `Host` headers of a request.

        Args:
            local: the address of this machine that the client has reached.
            is_probe: health and metrics may be called by any address: monitoring and platforms
                know no names.

        Raises:
            NotParseable: there is not exactly one, or it is no host.
            WrongHost: the service has not this name.
        """
        if len(given) != 1:
            raise NotParseable(f"a request needs exactly one Host header, not {len(given)}")
        name = host_name(given[0])
        if name is None:
            raise NotParseable("the Host header is not a name or an address, with or without port")
        address = _address(name)
        is_own = address is not None and (is_probe or address == _address(_plain(local or "")))
        if not (is_own or self.allows(name)):
            raise WrongHost(name)

    def allows(self, name: str) -> bool:
        """Whether a name is allowed, whatever address the client has reached."""
        if ANY in self._names or name in self._names or name.endswith(self._suffixes):
            return True
        address = _address(name)
        return name == LOOPBACK or (address is not None and address.is_loopback)


@lru_cache(maxsize=256)
def host_name(header: bytes) -> str | None:
    """The name or address in a `Host` header, in lower case without port; None if there is none."""
    found = HEADER.fullmatch(header.decode("latin-1").strip().lower())
    if found is None:
        return None
    if found["ipv6"] is not None:
        return found["ipv6"] if _address(found["ipv6"]) else None
    return _plain(found["name"]) or None


def check_names(text: str) -> str:
    """The setting itself. Raises `ValueError` that quotes an entry which is no name."""
    for name in split(text):
        plain = _plain(name)
        if plain != ANY and _address(plain) is None and not PATTERN.fullmatch(plain):
            raise ValueError(
                f"{name!r} is not a host: give names and addresses without port, such as "
                "credence.example.com, *.example.com or 10.0.0.5, separated by commas"
            )
    return text


def split(text: str) -> list[str]:
    """The entries of a list with commas."""
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def _plain(name: str) -> str:
    """Lower case, without the brackets of IPv6 and the dot of the root."""
    return name.strip().lower().strip("[]").removesuffix(".")


@lru_cache(maxsize=256)
def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
