"""A connection of HTTP/2 that takes requests as text of HTTP/1, for cases of both."""

from __future__ import annotations

from tests.support.http2_cases import first_request
from tests.support.http2_client import Client, Stream
from tests.testkit.client import Connection, Response

NO_ERROR = 0


class StreamConnection(Connection):
    """What tests use of `Connection`, over streams on its socket."""

    def __init__(self, connection: Connection, first: bytes = b"") -> None:
        self.socket = connection.socket
        self._client = Client(self.socket, first=first, huffman=False)
        self._streams: list[Stream] = []

    def send(self, text: bytes) -> None:
        """Send the heads of requests. Meaningless."""
        while text:
            request, text = first_request(text)
            head = request.head(authority=True)
            self._streams.append(self._client.begin_with(head, ended=request.ended))

    def response(self, _: str = "GET") -> Response:
        """The response to the first request that has none yet."""
        stream = self._client.whole(self._streams.pop(0))
        # Behind a whole response, the server has no use for the rest of a request.
        assert stream.reset in (None, NO_ERROR), stream
        del self._client.streams[stream.number]
        return Response(stream.status, "", stream.headers, stream.body)

    def at_end(self) -> bool:
        """The end of a stream does not end its connection, which goes on behind a refusal."""
        self.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        return self.response().status > 0
