"""The settings of proxies: whose word is believed, and the path under which the service is."""

import ipaddress
import re

from core.access.hosts import split

MAX_PREFIX = 256
# Segments of unreserved characters, RFC 3986 §2.3, so that a prefix can go into every link and
# header as it is. No `.` and `..`, which browsers resolve.
_PREFIX = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]+)+")


def check_proxies(text: str) -> str:
    """The setting itself. Raises `ValueError` that quotes an entry which is no address."""
    for entry in split(text):
        try:
            ipaddress.ip_network(entry)
        except ValueError as error:
            raise ValueError(
                f"{entry!r} is not an address or a network ({error}): give some such as "
                "10.0.0.5 or 10.0.0.0/8, separated by commas"
            ) from None
    return text


def is_prefix(text: str) -> bool:
    """Whether a text can stand before every path of the service, as `/credence` can."""
    return len(text) <= MAX_PREFIX and _PREFIX.fullmatch(text) is not None


def check_root_path(text: str) -> str:
    """The setting itself, which may be empty. Raises `ValueError` with what would be right."""
    if text and not is_prefix(text):
        raise ValueError(
            "is not a path that begins with / and does not end with /, such as /credence or "
            "/tools/credence: letters, digits and - . _ ~ may stand between, at most "
            f"{MAX_PREFIX} characters in all"
        )
    return text
