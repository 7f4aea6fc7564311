"""A client of HTTP/2 for tests, on `h2`: streams of one connection, and what came on each."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    InformationalResponseReceived,
    PingAckReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
    WindowUpdated,
)
from h2.settings import SettingCodes
from hpack import Encoder

from tests.support.certificate import certificate
from tests.testkit.client import HANG
from tests.testkit.server import Server

if TYPE_CHECKING:
    from typing_extensions import Self

Fields = Sequence[tuple[str, str] | tuple[bytes, bytes]]

#: Bytes that a client allows on its connection: windows of streams alone hold up a response.
PLENTY = 2**30


@dataclass
class Stream:
    """What came on a stream."""

    number: int
    interim: list[dict[str, str]] = field(default_factory=list)
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    trailers: list[tuple[str, str]] = field(default_factory=list)
    #: Bytes of the body that are not acknowledged.
    unread: int = 0
    ended: bool = False
    #: The code of RST_STREAM.
    reset: int | None = None

    def get(self, name: str) -> str | None:
        return dict(self.headers).get(name)

    @property
    def body(self) -> bytes:
        self.pieces[:] = [b"".join(self.pieces)]
        return self.pieces[0]

    @property
    def is_over(self) -> bool:
        return self.ended or self.reset is not None


class PlainEncoder(Encoder):
    """Without Huffman code, which takes `hpack` seconds for long values."""

    def encode(self, headers: Any, huffman: bool = False) -> bytes:
        return super().encode(headers, huffman=False)


class Client:
    """A connection of HTTP/2 with prior knowledge, or on a TLS socket that has agreed to it.

    Attributes:
        reads: windows are opened as content comes; if not, by `read`.
        terminated: the GOAWAY frames: error code, last stream.
        order: the streams of the DATA frames, as they came.
        closed: the server has closed the connection.
    """

    def __init__(
        self,
        address: tuple[str, int] | str | socket.socket,
        *,
        window: int = PLENTY,
        reads: bool = True,
        first: bytes = b"",
        huffman: bool = True,
    ) -> None:
        if isinstance(address, socket.socket):
            self.socket = address
        else:
            family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
            self.socket = socket.socket(family)
            self.socket.connect(address)
        self.socket.settimeout(HANG)
        config = H2Configuration(client_side=True, header_encoding="latin-1")
        # Whatever a test sends is for the server to refuse.
        config.validate_outbound_headers = config.normalize_outbound_headers = False
        self.h2 = H2Connection(config)
        if not huffman:
            self.h2.encoder = PlainEncoder()
        self.h2.local_settings = type(self.h2.local_settings)(
            client=True,
            initial_values={
                SettingCodes.ENABLE_PUSH: 0,
                SettingCodes.INITIAL_WINDOW_SIZE: min(window, PLENTY),
                SettingCodes.MAX_CONCURRENT_STREAMS: 100,
                SettingCodes.MAX_HEADER_LIST_SIZE: 65_536,
            },
        )
        self.reads = reads
        self.streams: dict[int, Stream] = {}
        self.terminated: list[tuple[int, int]] = []
        self.order: list[int] = []
        self.pongs = 0
        self.closed = False
        self._received = b""
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(PLENTY)
        if first:
            self.socket.sendall(first)
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection without a word."""
        self.socket.close()

    def flush(self) -> None:
        """Send what `h2` has made."""
        self.socket.sendall(self.h2.data_to_send())

    # Requests

    def begin(
        self, path: str, *fields: tuple[str, str], method: str = "GET", ended: bool = True
    ) -> Stream:
        """Send the head of a request."""
        pseudo = [(":method", method), (":scheme", "http"), (":authority", "a"), (":path", path)]
        return self.begin_with([*pseudo, *fields], ended=ended)

    def begin_with(self, fields: Fields, *, ended: bool = True) -> Stream:
        """Send a list of fields as the head of a request."""
        number = self.h2.get_next_available_stream_id()
        self.h2.send_headers(number, fields, end_stream=ended)
        self.flush()
        stream = self.streams[number] = Stream(number)
        return stream

    def send(self, stream: Stream, content: bytes = b"", *, ended: bool = False) -> None:
        """Send content, as the server's windows allow; what is longer waits for them."""
        while content:
            self.until(lambda: stream.is_over or self.room(stream) > 0)
            if stream.is_over:
                return
            piece = content[: min(self.room(stream), self.h2.max_outbound_frame_size)]
            content = content[len(piece) :]
            self.h2.send_data(stream.number, piece, end_stream=ended and not content)
            self.flush()
            ended = ended and bool(content)
        if ended:
            self.h2.end_stream(stream.number)
            self.flush()

    def room(self, stream: Stream) -> int:
        """Bytes that the server takes on a stream."""
        return self.h2.local_flow_control_window(stream.number)

    def reset(self, stream: Stream, code: int = 8) -> None:
        """Leave a stream."""
        self.h2.reset_stream(stream.number, code)
        self.flush()

    def send_part_of_a_head(self) -> None:
        """Send the beginning of a HEADERS frame."""
        self.flush()
        self.socket.sendall(b"\x00\x00\x10\x01")

    def read(self, stream: Stream) -> None:
        """Allow as much again as has come on a stream."""
        if stream.unread and not stream.is_over:
            self.h2.increment_flow_control_window(stream.unread, stream.number)
            stream.unread = 0
            self.flush()

    def get(self, path: str, *fields: tuple[str, str], method: str = "GET") -> Stream:
        """The whole answer to a request without content."""
        return self.whole(self.begin(path, *fields, method=method))

    def post(self, path: str, content: bytes, *fields: tuple[str, str]) -> Stream:
        """The whole answer to a request with content."""
        stream = self.begin(path, *fields, method="POST", ended=False)
        self.send(stream, content, ended=True)
        return self.whole(stream)

    # Answers

    def whole(self, stream: Stream) -> Stream:
        """Wait until nothing more comes on a stream."""
        self.until(lambda: stream.is_over)
        return stream

    def until(self, condition: Callable[[], object]) -> None:
        """Receive until `condition()` holds."""
        while not condition():
            assert not self.closed, f"the connection has ended: {self.terminated}, {self.streams}"
            self.receive()

    def ends(self) -> list[tuple[int, int]]:
        """Wait for the end of the connection; its GOAWAY frames."""
        while not self.closed:
            self.receive()
        return self.terminated

    def ping(self) -> None:
        """Wait until the server has read everything that was sent."""
        seen = self.pongs
        self.h2.ping(b"12345678")
        self.flush()
        self.until(lambda: self.pongs > seen)

    def receive(self) -> None:
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        if not data:
            self.closed = True
            return
        self._received += data
        # Frame by frame, because `h2` takes none behind GOAWAY in the same bytes.
        while len(self._received) >= 9:
            end = 9 + int.from_bytes(self._received[:3], "big")
            if len(self._received) < end:
                break
            frame, self._received = self._received[:end], self._received[end:]
            for event in self.h2.receive_data(frame):
                self._note(event)
        for stream in self.streams.values():
            if self.reads:
                self.read(stream)
        self.flush()

    def _note(self, event: object) -> None:
        if isinstance(event, ConnectionTerminated):
            self.terminated.append((int(event.error_code or 0), event.last_stream_id or 0))
            # Requests that were begun before are answered all the same.
            self.h2.state_machine.state = type(self.h2.state_machine.state).CLIENT_OPEN
            return
        if isinstance(event, PingAckReceived):
            self.pongs += 1
            return
        number = getattr(event, "stream_id", 0)
        stream = self.streams.get(number or 0)
        if stream is None:
            return
        if isinstance(event, InformationalResponseReceived):
            stream.interim.append(dict(event.headers))  # type: ignore[arg-type]
        elif isinstance(event, ResponseReceived):
            (_, status), *rest = event.headers
            stream.status, stream.headers = int(status), rest  # type: ignore[assignment]
        elif isinstance(event, DataReceived):
            stream.pieces.append(event.data or b"")
            self.order.append(stream.number)
            stream.unread += event.flow_controlled_length or 0
        elif isinstance(event, TrailersReceived):
            stream.trailers = [*event.headers]  # type: ignore[list-item]
        elif isinstance(event, StreamEnded):
            stream.ended = True
        elif isinstance(event, StreamReset):
            stream.reset = int(event.error_code or 0)
        else:
            assert isinstance(event, WindowUpdated), event


def client(server: Server, **options: Any) -> Client:
    """A connection to a server with prior knowledge."""
    return Client(("127.0.0.1", server.port), **options)


def tls(server: Server, *names: str) -> ssl.SSLSocket:
    """A connection to a server with TLS that offers protocols (ALPN)."""
    made = certificate().client_context()
    if names:
        made.set_alpn_protocols(names)
    plain = socket.create_connection(("127.0.0.1", server.port_of("https")), HANG)
    return made.wrap_socket(plain, server_hostname="localhost")
