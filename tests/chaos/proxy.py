"""A network that misbehaves: a TCP proxy between the service and one of its servers."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

CHUNK = 2**16
STEP_SECONDS = 0.02

Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Opened]]


def to_port(port: int) -> Connect:
    """Connections to a server of this machine."""
    return lambda: asyncio.open_connection("127.0.0.1", port)


def to_socket(path: Path) -> Connect:
    """Connections to a server that listens on a file."""
    return lambda: asyncio.open_unix_connection(str(path))


class Proxy:
    """Passes bytes on from a thread of its own, on a free port.

    `latency` is that of each piece in each direction, in seconds. `frozen` connections stay open,
    and nothing arrives. While it is `cut` none can be made.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self.latency, self.frozen, self._is_cut = 0.0, False, False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def __enter__(self) -> "Proxy":
        self._thread.start()
        listening = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """End all connections, in the middle of whatever they carry, and refuse new ones."""
        self._is_cut = True
        self._loop.call_soon_threadsafe(self._abort)

    def heal(self) -> None:
        """As a network should be."""
        self.latency, self.frozen, self._is_cut = 0.0, False, False

    def _abort(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _end(self) -> None:
        """No task and no socket is left."""
        self._server.close()
        self.heal()
        self._abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            there_reader, there_writer = await self._connect()
        except OSError:  # the server is away
            writer.transport.abort()
            return
        if self._is_cut:  # meanwhile
            writer.transport.abort()
            there_writer.transport.abort()
            return
        self._writers |= {writer, there_writer}
        try:
            await asyncio.gather(
                self._pass_on(reader, there_writer), self._pass_on(there_reader, writer)
            )
        finally:
            self._writers -= {writer, there_writer}

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(CHUNK):
                await asyncio.sleep(self.latency)
                while self.frozen:  # noqa: ASYNC110 - set by another thread
                    await asyncio.sleep(STEP_SECONDS)
                writer.write(piece)
                await writer.drain()
        writer.close()
