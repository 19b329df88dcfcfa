"""Which addresses a service may connect to when a request names the host.

Only public ones: anything else is this machine, its network, or the metadata of a cloud.
"""

import ipaddress
import socket
from collections.abc import Sequence
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = frozenset(  # of clouds, where it is not link-local: AWS, Alibaba, Oracle
    map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200", "192.0.0.192"))
)
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: an IPv4 address in the last bytes


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, each once. Raises `OSError` if it has none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def check_addresses(addresses: Sequence[str], *, private: bool = False) -> str:
    """The address to connect to, if all of them may be.

    Args:
        private: whether those of this machine and of private networks may be, too. Link-local
            ones, which have the metadata of clouds, never may.

    Raises:
        ValueError: one of them may not; the message names it.
    """
    for text in addresses:
        if reason := _refusal(ipaddress.ip_address(text.partition("%")[0]), private=private):
            raise ValueError(f"has the address {text}, which is {reason}")
    return addresses[0]


def _refusal(address: Address, *, private: bool) -> str | None:
    """Why an address is refused; None if it is not."""
    if (inner := _within(address)) is not None:
        return _refusal(inner, private=private)
    if address in _METADATA:
        return "a cloud's metadata"
    if address.is_unspecified or address.is_multicast or address.is_link_local:
        return "link-local, multicast or unspecified"
    if address.is_loopback or address.is_private or not address.is_global:
        return None if private else "private"
    return None


def _within(address: Address) -> Address | None:
    """The IPv4 address that an IPv6 one stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _TRANSLATED:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
