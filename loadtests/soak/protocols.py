"""Well-behaved clients of a soak that speak TLS, HTTP/2, WebSocket or read event streams."""

from __future__ import annotations

import os
import re
import ssl
import struct
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress

from loadtests.clients import http2_frames as http2
from loadtests.clients.connection import unverified
from loadtests.clients.event_streams import INITIAL_WINDOW_SIZE, WINDOW
from loadtests.clients.http2_connection import Http2Connection
from loadtests.clients.steady import known_requests as known
from loadtests.clients.steady.known_requests import Question, Wrong
from loadtests.clients.strict import BadResponse, Closed
from loadtests.soak.client import DEATH, TURNOVER, Client, Dialogue, Turn
from loadtests.soak.clients import keeper

STATUSES = {0x88: 200, 0x89: 204, 0x8B: 304, 0x8E: 500}
"""First bytes of header blocks that are fields of the static table (RFC 7541, appendix A)."""
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
"""Opcodes of WebSocket (RFC 6455 section 5.2)."""
GOING_AWAY = 1001
HANDSHAKE = (
    "GET {} HTTP/1.1\r\nHost: soak\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c29ha3Nvc2Frc29ha3NvYQ==\r\n\r\n"
)


def over_tls(client: Client) -> None:
    """As `keeper`, over TLS."""
    client.context = unverified()
    keeper(client)
    if client.random.random() < 0.1:
        client.hang_up()


class Multiplexed(Http2Connection):
    """A connection of HTTP/2, perhaps over TLS, that keeps what comes on each stream.

    Attributes:
        blocks: the header block of each answer.
        content: its content.
        leaving: the highest stream that the server will answer, when it has said so (GOAWAY).
    """

    def __init__(self, port: int, context: ssl.SSLContext | None) -> None:
        self._context = context
        self.blocks: dict[int, bytes] = {}
        self.content: defaultdict[int, bytearray] = defaultdict(bytearray)
        self.leaving: int | None = None
        self.streams = 0
        own = http2.frame(http2.SETTINGS, 0, 0, http2.setting(INITIAL_WINDOW_SIZE, WINDOW))
        super().__init__(port, own + http2.window_update(0, WINDOW))

    def exchange(self, data: bytes, done: Callable[[], bool] = lambda: True) -> None:
        """Sends, then reads until this is done or the connection has ended."""
        if self._context is not None and not isinstance(self.socket, ssl.SSLSocket):
            self.socket = self._context.wrap_socket(self.socket)
        try:
            self.socket.sendall(data)
            while not self.closed and not done():
                self._read()
        except ConnectionError:
            self.closed = True

    def ask(self, *asked: Question) -> list[int]:
        """Sends GETs at once and reads all answers; returns their streams."""
        streams = [self.streams + 2 * number + 1 for number in range(len(asked))]
        self.streams += 2 * len(asked)
        self.finish(b"".join(map(_request, streams, asked)), len(asked))
        return streams

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        super()._take(kind, flags, stream, payload)
        if kind == http2.HEADERS:
            self.blocks.setdefault(stream, payload)
        elif kind == http2.DATA:
            self.content[stream] += payload
        elif kind == http2.GOAWAY:
            self.leaving = int.from_bytes(payload[:4], "big")
            # What is beyond this has no answer.
            self.over.update(range(self.leaving + 2, self.streams + 1, 2))


def _request(stream: int, question: Question) -> bytes:
    path = question.request.split(b" ", 2)[1]
    fields = (
        *(http2.METHOD_GET, http2.SCHEME_HTTP, http2.AUTHORITY, http2.literal(b":path", path)),
        http2.literal(b"x-token", question.token.encode("ascii")),
    )
    return http2.request(stream, b"".join(fields))


#: Answers whose content is that of their token. Those that fail are checked by their status.
MULTIPLEXED: dict[known.Maker, int] = {
    known.plain("small"): 10,
    known.in_pieces("streamed"): 4,
    known.in_pieces("measured"): 4,
    known.bare("nothing", status=204): 1,
    known.bare("raises_before", status=500, failed=True): 1,
    known.much("large", 20_000, 400_000): 1,
    known.sleeps: 1,
}


def multiplexer(context: ssl.SSLContext | None) -> Turn:
    """Twenty requests at once on each connection of HTTP/2, then twenty more, then a new one."""
    kind = "HTTP/2 over TLS" if context else "h2c"

    def turn(client: Client) -> None:
        port = client.world.ports["https" if context else "http"]
        begun = time.monotonic()
        with Multiplexed(port, context) as connection:
            for _ in range(client.random.randrange(1, 5)):
                asked = [client.make(MULTIPLEXED) for _ in range(20)]
                streams = connection.ask(*asked)
                for stream, question in zip(streams, asked, strict=True):
                    _judge(client, kind, connection, stream, question, begun)
                if connection.closed or connection.leaving is not None or client.world.closing:
                    break
        client.pause(0.05)

    return turn


def _judge(
    client: Client,
    kind: str,
    connection: Multiplexed,
    stream: int,
    question: Question,
    begun: float,
) -> None:
    """Compare an answer on a stream; one that has none is lost with a worker, or sent again."""
    explains = client.world.explains
    content, block = bytes(connection.content.pop(stream, b"")), connection.blocks.pop(stream, b"")
    if connection.leaving is not None and stream > connection.leaving and explains(begun, TURNOVER):
        client.world.count(("retried", kind))
    elif stream not in connection.over and explains(begun, DEATH):
        client.world.count(("lost", kind))
    elif stream not in connection.over and not block and explains(begun, TURNOVER):
        # Sent on a connection that was just closed.
        client.world.count(("retried", kind))
    else:
        try:
            if stream not in connection.over:
                raise Wrong(f"no answer, error {connection.error}")
            # Behind a change of the table's size (RFC 7541 section 6.3).
            first = re.match(rb"(?:[ -\x3e]|\x3f[\x80-\xff]*[\0-\x7f])*(.)", block, re.DOTALL)
            if not first or STATUSES.get(first[1][0]) != question.status:
                raise Wrong(f"not {question.status}: {block[:9].hex()}")
            if not question.failed:
                question.check_content(content)
        except Wrong as error:
            client.wrong(kind, f"{question.kind}: {error}", question.request)
        else:
            client.world.count(("right", kind), ("natures", question.nature.value))


def sockets(path: str) -> Turn:
    """Messages on a WebSocket, each of which must come back, until one of both closes it."""
    kind = f"WebSocket {path}"

    def turn(client: Client) -> None:
        dialogue = client.connect()
        with client.judging(dialogue, kind, b"", TURNOVER):
            dialogue.say(HANDSHAKE.format(path).encode("ascii"))
            if (status := dialogue.interim()) != 101:
                raise Wrong(f"status {status}")
            for _ in range(client.random.randrange(1, 200)):
                text = f"{client.token()} ".encode("ascii") * client.random.choice((1, 20, 1000))
                dialogue.say(_masked(TEXT, text))
                code, came = _message(dialogue)
                if code == CLOSE:
                    (why,) = struct.unpack("!H", came[:2]) if came else (0,)
                    if why != GOING_AWAY or not client.world.explains(dialogue.opened, TURNOVER):
                        raise Wrong(f"closed with {why}")
                    client.world.count(("right", f"{kind}, closed for a new one"))
                    break
                if (code, came) != (TEXT, text):
                    raise Wrong(f"{came[:60]!r} instead of {text[:60]!r}")
                dialogue.last = dialogue.said
                client.world.count(("right", kind), ("natures", known.Nature.ANSWERED.value))
                if client.world.closing:
                    break
                client.pause(0.05)
            if client.random.random() < 0.8:
                dialogue.say(_masked(CLOSE, struct.pack("!H", 1000)))
                with suppress(Closed, BadResponse):
                    while _message(dialogue)[0] != CLOSE:
                        pass
        client.hang_up()

    return turn


def _masked(opcode: int, payload: bytes) -> bytes:
    """A frame of a client (RFC 6455 section 5.2)."""
    size, mask = len(payload), os.urandom(4)
    head = bytes([128 | opcode, 128 | min(size, 126)])
    if size > 125:
        head += struct.pack("!H", size)
    repeated = (mask * (size // 4 + 1))[:size]
    masked = int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")
    return head + mask + masked.to_bytes(size, "big")


def _message(dialogue: Dialogue) -> tuple[int, bytes]:
    """Opcode and content of the next frame that is no ping."""
    while True:
        first, size = dialogue.take(2)
        if size == 126:
            (size,) = struct.unpack("!H", dialogue.take(2))
        opcode, content = first & 15, dialogue.take(size)
        if opcode != PING:
            return opcode, content
        dialogue.say(_masked(PONG, content))


def listener(path: str) -> Turn:
    """Reads a stream of server-sent events for a while, then leaves."""

    def turn(client: Client) -> None:
        dialogue = client.connect()
        end = time.monotonic() + client.random.uniform(0.2, 5)
        with client.judging(dialogue, "events"):
            dialogue.say(f"GET {path} HTTP/1.1\r\nHost: soak\r\n\r\n".encode("ascii"))
            while time.monotonic() < end and not client.world.closing:
                if not dialogue.sip():
                    raise Closed
            _, _, body = bytes(dialogue.received).partition(b"\r\n\r\n")
            whole = known.unchunked(body).rpartition(b"\n\n")[0]
            events = whole.split(b"\n\n") if whole else []
            if not all(re.fullmatch(rb"data: \d+", event) for event in events):
                raise Wrong(f"malformed events: {events[:3]}")
            times = [int(event[6:]) for event in events]
            if times != sorted(set(times)):
                raise Wrong("events in another order than they were made")
            client.world.count(*[("right", "event")] * len(events))
        client.hang_up()

    return turn


def company(mode: str) -> list[Turn]:
    """Those of a mode: in `single` and `forking` streams and WebSockets would keep all workers."""
    common = [over_tls, over_tls, multiplexer(None), multiplexer(unverified("h2"))]
    if mode in ("single", "forking"):
        return common
    live = [sockets("/live/"), sockets("/live/")] if mode == "asyncio" else []
    return [*common, *live, sockets("/sockets/"), *[listener("/events/events?0.02")] * 2]
