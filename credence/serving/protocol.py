"""uvicorn's HTTP with an end to what stands before a body: its parser takes any length."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 2**16  # as many as nginx and Apache take, and then some


class BoundedProtocol(HttpToolsProtocol):
    """Answers 400 to a request whose line and headers have more than `MAX_HEAD_BYTES`."""

    _head_bytes = 0
    _in_head = False

    def data_received(self, data: bytes) -> None:
        continued = self._in_head
        super().data_received(data)
        if continued and self._in_head:  # one header alone may come in many pieces
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The request line and headers are too long.")

    def on_message_begin(self) -> None:
        self._head_bytes, self._in_head = 0, True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            raise ValueError("too long")  # the parser stops, and uvicorn answers
        super().on_headers_complete()
