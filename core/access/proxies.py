"""The setting with the proxies whose word on the client's address is believed."""

import ipaddress

from core.access.hosts import split


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
