"""Who may call. Keys come later; until then only this machine may, unless told otherwise."""

import ipaddress

from core.exceptions import InvalidSetting
from core.settings import Settings


def check_bind(settings: Settings, host: str) -> None:
    """Refuse to be reachable from elsewhere without a key.

    Raises:
        InvalidSetting: if `host` is no loopback address and `CREDENCE_AUTH` is not `off`.
    """
    if settings.auth == "off" or is_loopback(host):
        return
    raise InvalidSetting(
        f"{host!r} can be reached from other machines, and no key protects the service: "
        "bind 127.0.0.1, or set CREDENCE_AUTH=off where the network itself is trusted"
    )


def is_loopback(host: str) -> bool:
    """True for localhost, 127.0.0.0/8 and ::1; other names are not looked up, and not trusted."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
