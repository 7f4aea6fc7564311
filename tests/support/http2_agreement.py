"""Comparison of our HPACK and HTTP/2 with `hpack` and `h2`, libraries in Python."""

from __future__ import annotations

import random
from collections.abc import Iterable

import hpack
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes

from tests.support.rust_program import RustProgram

Fields = list[tuple[bytes, bytes]]

#: Names and values from which lists are made: known and unknown ones, secrets, text and any bytes.
NAMES = (
    *(b":path", b":status", b"cookie", b"set-cookie", b"authorization", b"etag", b"x-a"),
    *(b"content-type", b"date"),
)
SECRET = {b"cookie", b"set-cookie", b"authorization"}
VALUES = (b"", b"/", b"200", b"a", b"text/html; charset=utf-8", b"gzip, deflate", bytes(range(256)))
#: Sizes of tables.
SIZES = (0, 40, 100, 1000, 4096, 65_536)
#: Lists on one connection.
LISTS = 1000


class Ours(RustProgram):
    """Our implementation: a process that answers calls (`core/fuzz/src/bin/http2.rs`)."""

    name = "http2_peer"

    def call(self, letter: bytes, argument: bytes = b"") -> bytes:
        """The result of a call; EOFError if it broke down."""
        self.send(argument, letter)
        length = self.answers.read(4)
        if len(length) < 4:
            raise EOFError(f"it broke down over {letter!r} {argument!r}")
        return self.answers.read(int.from_bytes(length, "big"))

    def decode(self, block: bytes) -> Fields | str:
        """The fields of a block, or why it is refused."""
        result = self.call(b"d", block)
        if result[:1] == b"!":
            return result[1:].decode()
        texts: list[bytes] = []
        at = 1
        while at < len(result):
            end = at + 4 + int.from_bytes(result[at : at + 4], "big")
            texts.append(result[at + 4 : end])
            at = end
        return list(zip(texts[::2], texts[1::2], strict=True))

    def encode(self, fields: Fields) -> bytes:
        texts = (text for field in fields for text in field)
        return self.call(b"e", b"".join(len(text).to_bytes(4, "big") + text for text in texts))


def made_up(chance: random.Random) -> Fields:
    """A list of fields, of which some come again and again."""

    def text(known: tuple[bytes, ...]) -> bytes:
        kind = chance.random()
        if kind < 0.6:
            return chance.choice(known)
        if kind < 0.9:
            return chance.choice(known) + b"%d" % chance.randrange(30)
        return chance.randbytes(chance.randrange(300 if kind < 0.999 else 10_000))

    return [(text(NAMES).lower(), text(VALUES)) for _ in range(chance.randrange(12))]


def compare_lists(ours: Ours, count: int, seed: int, first: int = 0) -> None:
    """Compare some lists, on connections that are numbered from `first` on."""
    for number in range(first, first + -(-count // LISTS)):
        try:
            compare_connection(ours, min(count, LISTS), random.Random(f"{seed} {number}"))
        except AssertionError as error:
            raise AssertionError(f"connection {number} of seed {seed}: {error}") from error
        count -= LISTS


def compare_connection(ours: Ours, count: int, chance: random.Random) -> None:
    """Each side decodes what the other encodes, with tables that change their sizes."""
    offered = chance.choice(SIZES)
    ours.call(b"n", offered.to_bytes(4, "big"))
    encoder, decoder = hpack.Encoder(), hpack.Decoder(max_header_list_size=1 << 30)
    encoder.header_table_size = min(offered, 4096)
    decoder.max_allowed_table_size = 4096
    for _ in range(count):
        if chance.random() < 0.02:
            encoder.header_table_size = chance.choice([size for size in SIZES if size <= offered])
        if chance.random() < 0.02:
            # A decoder of `hpack` insists that what is over its new size is given up at once.
            decoder.max_allowed_table_size = chance.choice(SIZES)
            ours.call(b"o", decoder.max_allowed_table_size.to_bytes(4, "big"))
        fields = made_up(chance)
        block = encoder.encode(
            [
                hpack.NeverIndexedHeaderTuple(*field) if chance.random() < 0.1 else field
                for field in fields
            ],
            huffman=chance.random() < 0.5,
        )
        assert ours.decode(block) == fields, block.hex()
        block = ours.encode(fields)
        decoded = [*decoder.decode(block, raw=True)]
        assert plain(decoded) == fields, block.hex()
        for (name, value), field in zip(fields, decoded, strict=True):
            is_hidden = isinstance(field, hpack.NeverIndexedHeaderTuple)
            # An empty value is in the static table.
            assert is_hidden == (name in SECRET and value != b""), (name, block.hex())


def plain(fields: Iterable[tuple[str | bytes, str | bytes]]) -> Fields:
    """Fields of `hpack` as tuples of bytes."""
    return [(bytes(name), bytes(value)) for name, value in fields]  # type: ignore[arg-type]


def compare_mutants(ours: Ours, count: int, seed: int | str) -> int:
    """Changed blocks: both refuse them, or both see the same. Returns how many both take."""
    chance = random.Random(seed)
    taken = 0
    for _ in range(count):
        fields = [*made_up(chance), (b"x-last", b"a")]
        block = bytearray(hpack.Encoder().encode(fields, huffman=chance.random() < 0.5))
        for _ in range(chance.randrange(1, 4)):
            block[chance.randrange(len(block))] = chance.randrange(256)
        ours.call(b"n", (4096).to_bytes(4, "big"))
        mine = ours.decode(bytes(block))
        theirs: Fields | str
        try:
            decoder = hpack.Decoder(max_header_list_size=1 << 30)
            theirs = plain(decoder.decode(bytes(block), raw=True))
        except hpack.HPACKError as error:
            theirs = str(error)
        if isinstance(mine, str) and isinstance(theirs, str):
            continue
        assert mine == theirs, bytes(block).hex()
        taken += 1
    return taken


class Client:
    """A client of `h2`, whose peer is our connection; it checks each frame that comes."""

    def __init__(self, ours: Ours) -> None:
        self.ours = ours
        configuration = H2Configuration(client_side=True, header_encoding=None)
        self.connection = H2Connection(configuration)
        #: Content, status and end of each stream.
        self.content: dict[int, bytes] = {}
        self.statuses: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.connection.initiate_connection()
        self.take(ours.call(b"c"))
        # `h2` takes any acknowledgement for that of later settings too.
        self.exchange()

    def take(self, received: bytes) -> None:
        """What the server has sent; content is acknowledged at once."""
        for event in self.connection.receive_data(received):
            if isinstance(event, ResponseReceived):
                self.statuses[event.stream_id] = dict(event.headers)[b":status"]
            elif isinstance(event, DataReceived):
                self.content[event.stream_id] = self.content.get(event.stream_id, b"") + event.data
                self.connection.acknowledge_received_data(
                    event.flow_controlled_length, event.stream_id
                )
            elif isinstance(event, StreamEnded | StreamReset):
                self.ended.add(event.stream_id)

    def exchange(self) -> None:
        """Sends what is to be sent, and takes what comes, until nothing does."""
        while data := self.connection.data_to_send():
            self.take(self.ours.call(b"r", data))

    def request(self, path: bytes, fields: Iterable[tuple[bytes, bytes]], has_content: bool) -> int:
        stream = self.connection.get_next_available_stream_id()
        method = b"POST" if has_content else b"GET"
        head = [
            (b":method", method), (b":scheme", b"http"), (b":path", path), (b":authority", b"a")
        ]  # fmt: skip
        self.connection.send_headers(stream, [*head, *fields], end_stream=not has_content)
        return stream

    def upload(self, stream: int, content: bytes) -> None:
        """Sends content as the windows allow, with padding at times."""
        at = 0
        while at < len(content):
            room = min(
                self.connection.local_flow_control_window(stream) - 9,
                self.connection.max_outbound_frame_size - 9,
            )
            if room <= 0:
                self.exchange()
                continue
            part = content[at : at + room]
            padding = 8 if len(part) % 3 == 0 else None
            self.connection.send_data(stream, part, pad_length=padding)
            at += len(part)
        self.connection.end_stream(stream)


def compare_sessions(ours: Ours, count: int, seed: int) -> None:
    """Connections of `h2` with several requests at once: each gets its content back."""
    chance = random.Random(seed)
    for _ in range(count):
        client = Client(ours)
        expected: dict[int, bytes | None] = {}
        for _ in range(chance.randrange(1, 12)):
            kind = chance.random()
            fields = [
                (b"x-a", b"b" * chance.randrange(200)),
                (b"priority", b"u=%d, i" % chance.randrange(8)),
            ]
            if kind < 0.3:
                length = chance.choice([0, 1, 16_384, 70_000, 300_000])
                stream = client.request(b"/%d" % length, fields[: chance.randrange(3)], False)
                expected[stream] = b"a" * length
            elif kind < 0.6:
                stream = client.request(b"/x", [*fields, (b"x-long", b"c" * 15_000)], False)
                expected[stream] = None
            else:
                content = chance.randbytes(chance.choice([0, 1, 16_384, 70_000, 300_000]))
                stream = client.request(b"/x", fields, True)
                client.upload(stream, content)
                expected[stream] = content
            if chance.random() < 0.5:
                client.exchange()
            if chance.random() < 0.2:
                client.connection.ping(b"12345678")
            if chance.random() < 0.2:
                # A smaller window than 128 bytes is an attack (CVE-2019-9511).
                for size in (chance.choice([0, 200, 1000, 65_535]), 1 << 20):
                    client.connection.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: size})
                    client.exchange()
        client.exchange()
        assert client.ended == set(expected)
        for stream, wanted in expected.items():
            assert client.statuses[stream] == b"200"
            if wanted is None:
                assert client.content[stream].startswith(b"GET /x HTTP/2.0\r\nhost: a\r\n")
            else:
                assert client.content.get(stream, b"") == wanted
