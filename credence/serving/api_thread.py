"""The API: uvicorn in a thread of its own, so that the process's signals stay the supervisor's."""

import os
import socket
import threading

import uvicorn
from fastapi import FastAPI

from credence.serving.connections import connections_of
from credence.serving.crowd import Crowd
from credence.serving.errors import CannotStart


class ApiThread:
    """A server on an open socket; `grace_seconds` are for requests in flight when it stops."""

    def __init__(self, app: FastAPI, listener: socket.socket, grace_seconds: int) -> None:
        config = uvicorn.Config(
            app,
            http=connections_of(Crowd(app.state.settings.max_queued_seconds)),
            lifespan="on",
            log_config=None,  # the service's own logging is configured already
            log_level="warning",  # that it starts and stops is the supervisor's to tell
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=grace_seconds,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="api", daemon=True
        )

    def start(self) -> None:
        """Begin to start up; `ready` tells when requests are answered."""
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
        """Take no new requests and answer those in flight."""
        self._server.should_exit = True

    def join(self, timeout_seconds: float) -> None:
        """Wait until the server is gone, but no longer than this."""
        self._thread.join(max(timeout_seconds, 0.0))


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, taken before anything is started; port 0 takes a free one.

    Raises:
        CannotStart: if the address is taken, not ours, or unknown.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        # The library's own text repeats the address; a name that is not known has no errno.
        code = error.errno or 0
        reason = (os.strerror(code) if code > 0 else str(error.strerror)).lower()
        raise CannotStart(
            f"cannot listen on {host}:{port}: {reason}; choose another --port or --host"
        ) from error


def address(host: str, listener: socket.socket) -> str:
    """The URL of a listening socket, with the port that it really has."""
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
