"""Where the service may listen: beyond this machine only with a key, unless told otherwise."""

import ipaddress

from core.access.keys import Keys
from core.database.database import migrate, opened
from core.exceptions import InvalidSetting
from core.settings import Settings


def check_bind(settings: Settings, host: str) -> None:
    """Refuse to be reachable from elsewhere without a key.

    Raises:
        InvalidSetting: if `host` is no loopback address, there is no key, neither in the database
            nor in a file, and `CREDENCE_AUTH` is not `off`.
        Unavailable: if it takes the database to tell, and that does not answer.
    """
    if settings.auth == "off" or is_loopback(host) or settings.admin_key_file or _has_key(settings):
        return
    raise InvalidSetting(
        f"{host!r} can be reached from other machines, and no key protects the service: "
        "make one with `credence keys create` or name a file in CREDENCE_ADMIN_KEY_FILE; "
        "else bind 127.0.0.1, or set CREDENCE_AUTH=off where the network itself is trusted"
    )


def _has_key(settings: Settings) -> bool:
    with opened(settings.sqlalchemy_url) as database:
        migrate(database)
        return bool(Keys(database).valid())


def is_loopback(host: str) -> bool:
    """True for localhost, 127.0.0.0/8 and ::1; other names are not looked up, and not trusted."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
