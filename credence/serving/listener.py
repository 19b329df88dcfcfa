"""The socket on which the service listens. Imports nothing that takes time."""

import os
import socket

SILENT_PEER_SECONDS = 60


class CannotStart(Exception):
    """The service could not be started; the message is for the user."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free port.

    Raises:
        CannotStart: the address is in use, unknown, or not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        # str(error) would repeat the address; an unknown host name has no positive errno.
        code = error.errno or 0
        reason = (os.strerror(code) if code > 0 else str(error.strerror)).lower()
        raise CannotStart(
            f"cannot listen on {host}:{port}: {reason}; choose another --port or --host"
        ) from error
    _close_silent_peers(listener)
    return listener


def _close_silent_peers(listener: socket.socket) -> None:
    """Let the kernel close connections whose peer has gone or read nothing for this long.

    Connections inherit the options of their listener. uvicorn itself would wait for ever.
    """
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # RFC 5482, of Linux
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * SILENT_PEER_SECONDS)


def address(host: str, listener: socket.socket) -> str:
    """The URL of a listening socket, with its actual port."""
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
