"""Close a connection so that its client can read the response before the end.

A socket that is closed while bytes of the client are unread resets the connection, and a reset may
destroy the response on its way (RFC 9112, section 9.6). So a server that refuses a body, or stops
while one arrives, first ends only its own direction, and for a while discards what comes.
"""

import asyncio
from collections.abc import Callable
from typing import Any

LINGER_SECONDS = 1.0  # the client's network is as slow as that; a stop takes no longer


class LingeringTransport:
    """A transport whose `close` waits for a client that still sends; later writes are dropped.

    Args:
        transport: the connection, which does all else.
        is_sending: whether a part of a request is still to come.
    """

    def __init__(self, transport: asyncio.Transport, is_sending: Callable[[], bool]) -> None:
        self._transport, self._is_sending = transport, is_sending
        self._is_closed = False

    def write(self, data: bytes) -> None:
        """Send bytes, unless the connection is closed: uvloop would raise."""
        if not self.is_closing():
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Whether `close` was called: what comes now is to be discarded."""
        return self._is_closed or self._transport.is_closing()

    def close(self) -> None:
        """Send what was written and the end; close when the client has ended or time is up."""
        if self.is_closing():
            return
        self._is_closed = True
        if self._is_sending() and self._transport.can_write_eof():
            self._transport.write_eof()
            self._transport.resume_reading()  # flow control may have paused it
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.close)
        else:
            self._transport.close()
