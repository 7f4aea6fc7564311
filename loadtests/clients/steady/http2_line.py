"""A connection of HTTP/2 whose streams carry the requests of a steady load, checked as in HTTP/1.1.

A request on a stream behind the last one of a GOAWAY, or on one that is reset with REFUSED_STREAM,
was not processed and may be sent again (RFC 9113 sections 6.8 and 8.7). Every other stream must
bring its whole answer, whatever becomes of the connection.
"""

from __future__ import annotations

import select
import ssl
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, DataReceived, ResponseReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes

from loadtests.clients.connection import unverified
from loadtests.clients.steady.connection import Fault, Line, NotProcessed
from loadtests.clients.steady.known_requests import Question
from loadtests.clients.strict import BadResponse, Closed, Response

WINDOW = 1 << 20
"""Bytes of an answer that may come before the client has read."""
UNSENT = 1 << 31
"""The number of a stream that was not begun: higher than any that a server can allow."""
OF_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "host"}
"""Fields of HTTP/1.1 that HTTP/2 has no place for."""


@dataclass
class Stream:
    """What has come on a stream, and how many bytes of its request are still to be sent."""

    number: int
    left: int
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    ended: bool = False
    reset: int | None = None


class Http2Line(Line):
    """One connection, over TLS or with prior knowledge; requests said at once are streams.

    Attributes:
        leaves: no further stream may begin: the server has sent GOAWAY, or nothing can be sent.
    """

    def __init__(self, port: int, host: str = "127.0.0.1", *, tls: bool) -> None:
        super().__init__(port, host)
        self.leaves = False
        self._error = ErrorCodes.NO_ERROR
        self._last = (1 << 31) - 1
        self._streams: list[Stream] = []
        self._said = bytearray()
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="latin-1"))
        self._h2.initiate_connection()
        # Not what is set in `local_settings`: that is never sent.
        settings: dict[SettingCodes | int, int] = {SettingCodes.INITIAL_WINDOW_SIZE: WINDOW}
        self._h2.update_settings(settings | {SettingCodes.ENABLE_PUSH: 0})
        self._h2.increment_flow_control_window(WINDOW)
        try:
            if tls:
                self.socket = unverified("h2").wrap_socket(self.socket)
        except TimeoutError:
            raise Fault("silent", "connect", port=self.port) from None
        except OSError as error:
            # Perhaps with the process that had accepted it.
            raise Fault("reset", f"connect: {error.strerror or error}", port=self.port) from None
        self._send()

    def ended(self) -> str:
        """How the server has ended an idle connection; empty if it lives."""
        while not self._ended and self._has_input():
            self._receive()
        if self.leaves:
            return "left after GOAWAY"
        return ("reset" if self.was_reset else "closed") if self._ended else ""

    def say(self, data: bytes) -> None:
        """Send requests, written as in HTTP/1.1, as far as they are there."""
        self._said += data
        while self._said:
            if self._streams and self._streams[-1].left:
                self._say_content(self._streams[-1])
            elif b"\r\n\r\n" in self._said:
                head, _, self._said = self._said.partition(b"\r\n\r\n")
                self._say_head(head.decode("latin-1"))
            else:
                break

    def _say_head(self, head: str) -> None:
        line, *lines = head.split("\r\n")
        method, target, _ = line.split(" ")
        fields = [
            (name.lower(), value) for name, _, value in (one.partition(": ") for one in lines)
        ]
        length = int(dict(fields).get("content-length", 0))
        if self.leaves:
            self._streams.append(Stream(UNSENT, length))
            return
        scheme = "https" if isinstance(self.socket, ssl.SSLSocket) else "http"
        pseudo = [
            (":method", method),
            (":scheme", scheme),
            (":authority", "lab"),
            (":path", target),
        ]
        kept = [one for one in fields if one[0] not in OF_CONNECTION]
        number = self._h2.get_next_available_stream_id()
        self._streams.append(Stream(number, length))
        self._h2.send_headers(number, [*pseudo, *kept], end_stream=not length)
        self._send()

    def _say_content(self, stream: Stream) -> None:
        """Send what was said of a request's content."""
        content = bytes(self._said[: stream.left])
        del self._said[: stream.left]
        stream.left -= len(content)
        while content and not self._is_over(stream):
            room = self._h2.local_flow_control_window(stream.number)
            piece = content[: min(room, self._h2.max_outbound_frame_size)]
            if not piece:
                self._receive()
                continue
            content = content[len(piece) :]
            ends = not content and not stream.left
            self._h2.send_data(stream.number, piece, end_stream=ends)
            self._send()

    def answer(self, question: Question) -> None:
        """Read the answer on the first of the streams. Raises Fault, or NotProcessed."""
        super().answer(question)
        self.goes_on = bool(self._streams) or not self.leaves

    def response(self, method: str = "GET") -> Response:
        """Read the response on the first of the streams."""
        stream = self._streams[0]
        while not self._is_over(stream):
            self._receive()
        del self._streams[0]
        if stream.ended:
            # What a server may still say of the request's content is nobody's concern.
            return Response(stream.status, "", stream.headers, bytes(stream.body), framing="length")
        if stream.number > self._last or stream.reset == ErrorCodes.REFUSED_STREAM:
            raise NotProcessed
        if self._error != ErrorCodes.NO_ERROR:
            raise Fault("malformed", f"GOAWAY with error {self._error}")
        if stream.reset is not None:
            raise ConnectionResetError(0, f"the stream was reset with error {stream.reset}")
        if stream.status:
            raise BadResponse(f"{len(stream.body)} bytes of content have come")
        raise Closed

    def _is_over(self, stream: Stream) -> bool:
        """Whether nothing more comes on a stream."""
        excluded = stream.number > self._last
        return stream.ended or stream.reset is not None or excluded or self._ended

    def _has_input(self) -> bool:
        """Whether something can be received at once."""
        if isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            return True
        return bool(select.select([self.socket], [], [], 0)[0])

    def _receive(self) -> None:
        """Receive once, and say what follows from it."""
        if not self._fill():
            return
        # Frame by frame, because `h2` takes none behind GOAWAY in the same bytes.
        while len(self._read) >= 9:
            end = 9 + int.from_bytes(self._read[:3], "big")
            if len(self._read) < end:
                break
            frame = bytes(self._read[:end])
            del self._read[:end]
            try:
                events = self._h2.receive_data(frame)
            except ProtocolError as error:
                raise BadResponse(str(error)) from None
            for event in events:
                self._note(event)
        self._send()

    def _note(self, event: object) -> None:
        if isinstance(event, ConnectionTerminated):
            self.leaves = True
            self._error = ErrorCodes(event.error_code or 0)
            self._last = min(self._last, event.last_stream_id or 0)
            # Streams that were begun before are answered all the same.
            self._h2.state_machine.state = ConnectionState.CLIENT_OPEN
            return
        number = getattr(event, "stream_id", None)
        stream = next((one for one in self._streams if one.number == number), None)
        if isinstance(event, DataReceived):
            self._h2.acknowledge_received_data(
                event.flow_controlled_length or 0, event.stream_id or 0
            )
        if stream is None:
            return
        if isinstance(event, ResponseReceived):
            (_, status), *stream.headers = [
                (str(name), str(value)) for name, value in event.headers or ()
            ]
            stream.status = int(status)
        elif isinstance(event, DataReceived):
            stream.body += event.data or b""
        elif isinstance(event, StreamEnded):
            stream.ended = True
        elif isinstance(event, StreamReset) and not stream.ended:
            stream.reset = int(event.error_code or 0)

    def _send(self) -> None:
        """Send what `h2` has made. If the connection has ended, answers may have come before."""
        try:
            self.socket.sendall(self._h2.data_to_send())
        except TimeoutError:
            raise Fault("silent", "nothing is taken") from None
        except OSError:
            self.was_reset = self.leaves = True
