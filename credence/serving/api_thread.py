"""The API: uvicorn in a thread, so that the supervisor handles the process's signals."""

import os
import socket
import threading
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI

from credence.serving.concurrency_limit import ConcurrencyLimit
from credence.serving.connections import connections_of

if TYPE_CHECKING:
    from app.dependencies import Services  # loads torch: first report a port in use

SILENT_PEER_SECONDS = 60


class CannotStart(Exception):
    """The service could not be started; the message is for the user."""


class ApiThread:
    """A server on an open socket; `grace_seconds` are for requests in flight when it stops."""

    def __init__(self, app: FastAPI, listener: socket.socket, grace_seconds: int) -> None:
        config = uvicorn.Config(
            app,
            http=connections_of(
                ConcurrencyLimit(app.state.settings.max_queued_seconds),
                lambda: app.state.services.metrics.count_refusal(),  # noqa: PLW0108 - set at start-up
            ),
            lifespan="on",
            log_config=None,  # the service's own logging is configured already
            log_level="warning",  # the supervisor reports start and stop
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=grace_seconds,
        )
        self._server = _Server(config, app)
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="api", daemon=True
        )

    def start(self) -> None:
        """Start the thread; `ready` becomes true when requests are answered."""
        self._thread.start()

    @property
    def ready(self) -> bool:
        """Whether start-up is complete."""
        return self._server.started

    @property
    def alive(self) -> bool:
        """Whether the server runs; false too when its start-up failed."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Take no new requests and finish those in flight."""
        self._server.should_exit = True

    def join(self, timeout_seconds: float) -> None:
        """Wait until the server has ended, but no longer than this."""
        self._thread.join(max(timeout_seconds, 0.0))


class _Server(uvicorn.Server):
    """Ends event streams before it waits for requests in flight; they would not end otherwise."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        services: Services = self._app.state.services
        services.event_streams.end()
        await super().shutdown(sockets)


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
