"""Connections to hosts that a request names, pinned to an address that was checked.

The name is resolved once, all its addresses are checked, and the connection goes to one that was
checked: a name that changes its mind meanwhile leads nowhere. The certificate must be the name's.
Redirects and proxies are not followed.
"""

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

from core.sources.places.addresses import check_addresses, resolve

SILENCE_SECONDS = 20.0  # without a byte


class Refused(Exception):
    """The host may not be connected to; the message says why."""


class Unknown(OSError):
    """The host has no address."""


@contextmanager
def connected(
    host: str,
    port: int,
    seconds: float,
    *,
    private: bool = False,
    ca_file: Path | None = None,
    tls: bool = True,
) -> Iterator[http.client.HTTPConnection]:
    """A connection that is cut when the time is over, even if a byte comes now and then.

    Args:
        private: see `check_addresses`.
        tls: whether to encrypt; without it nobody vouches for the host.

    Raises:
        Refused: an address may not be connected to, or the certificate is not the host's.
        Unknown: the host has no address.
        OSError: the connection failed.
    """
    address = _address(host.strip("[]"), port, private=private)
    connection = http.client.HTTPConnection(host, port)
    connection.auto_open = 0  # it would look up the name again
    connection.sock = socket.create_connection((address, port), min(SILENCE_SECONDS, seconds))
    cutter = None
    try:
        if tls:
            connection.sock = _wrapped(connection.sock, host, ca_file)
        cutter = Timer(seconds, _cut, [connection.sock])
        cutter.daemon = True
        cutter.start()
        if isinstance(connection.sock, ssl.SSLSocket):
            _shake_hands(connection.sock)
        yield connection
    finally:
        if cutter is not None:
            cutter.cancel()
        connection.close()


def reason(error: Exception) -> str:
    """Why a connection failed, without addresses."""
    if isinstance(error, TimeoutError):
        return "the host does not answer"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return f"the host breaks the protocol ({type(error).__name__})"


def _address(host: str, port: int, *, private: bool) -> str:
    try:
        return check_addresses(resolve(host, port), private=private)
    except (OSError, UnicodeError):
        raise Unknown(f"the host {host} is not known") from None
    except ValueError as error:
        raise Refused(f"the host {error}: it is not connected to") from None


def _wrapped(plain: socket.socket, host: str, ca_file: Path | None) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    return context.wrap_socket(
        plain, server_hostname=host.strip("[]"), do_handshake_on_connect=False
    )


def _shake_hands(encrypted: ssl.SSLSocket) -> None:
    try:
        encrypted.do_handshake()
    except ssl.SSLCertVerificationError as error:
        raise Refused(f"its certificate is not valid ({error.verify_message})") from None


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # closed already
        return
