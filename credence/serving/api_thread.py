"""The API: uvicorn in a thread, so that the supervisor handles the process's signals."""

import asyncio
import socket
import threading
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI

from credence.serving.concurrency_limit import ConcurrencyLimit
from credence.serving.connections import connections_of

if TYPE_CHECKING:
    from app.dependencies import Services  # loads torch: first report a port in use

# Longer than clients and proxies keep an idle connection: HAProxy here 60 s, httpx 5. One that the
# server closes first may just carry the next request, which then fails.
KEEP_ALIVE_SECONDS = 75
BODY_SECONDS = 2  # for bodies in flight when the server stops; the rest of the grace is for answers


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
            proxy_headers=False,  # the application reads them, and the prefix
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
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
    """Ends event streams before it waits for requests in flight; they would not end otherwise.

    Bodies that still come after `BODY_SECONDS` are refused, so that their clients try again.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        services: Services = self._app.state.services
        services.event_streams.end()
        loop = asyncio.get_running_loop()
        loop.call_later(BODY_SECONDS, self._app.state.open_bodies.close)
        await super().shutdown(sockets)
