"""Checks the address on which the service listens: other machines may reach it only with keys."""

import ipaddress

from core.exceptions import InvalidSetting
from core.settings import Settings


def check_bind(settings: Settings, host: str) -> None:
    """Check that the service may listen on `host`.

    Raises:
        InvalidSetting: `host` is not a loopback address, there is no key in the database or a
            file, no sign-on provider is set, and `CREDENCE_AUTH` is not `off`.
        Unavailable: the database, which may contain a key, does not answer.
    """
    if settings.auth == "off" or is_loopback(host) or settings.admin_key_file:
        return
    if settings.oidc_issuer or _has_key(settings):
        return
    raise InvalidSetting(
        f"{host!r} can be reached from other machines, and no key protects the service: "
        "create one with `credence keys create`, or name a file in CREDENCE_ADMIN_KEY_FILE; "
        "or bind 127.0.0.1, or set CREDENCE_AUTH=off if you trust the network"
    )


def _has_key(settings: Settings) -> bool:
    # imported here: on a loopback address the start does not wait for the database's libraries
    from core.access.keys import Keys  # noqa: PLC0415
    from core.database.database import migrate, opened  # noqa: PLC0415

    with opened(settings.sqlalchemy_url) as database:
        migrate(database)
        return bool(Keys(database).valid())


def is_loopback(host: str) -> bool:
    """Whether this is localhost, 127.0.0.0/8 or ::1; other names are not resolved."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
