"""The protocol cases of the Autobahn test suite: a driver, and verdicts on a server that echoes."""

from __future__ import annotations

import codecs
import contextlib
import re
import shlex
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from loadtests.errors import LabError

FILE = Path(__file__).with_name("cases.txt")
KINDS = {"more": 0, "text": 1, "binary": 2, "close": 8, "ping": 9, "pong": 10}
NAMES = {opcode: name for name, opcode in KINDS.items()}
MASK = 0x5A
"""Each byte of a frame's mask."""
WORD = re.compile(r"(-?)(?:rsv(\d)\.)?([a-z]+)(\d*):(.*)", re.DOTALL)
REPEATED = re.compile(r"(\d+)\*(.*)", re.DOTALL)
WAIT = 0.2
"""Seconds for the server, where a case gives it time."""
SILENCE = 1.0
"""Seconds after which nothing more is expected."""
MUCH = 1 << 16
"""Bytes that take longer: LONG seconds."""
LONG = 20.0
OK, NOT_STRICT, FAILED, ANY = "OK", "not strict", "failed", "for information"
UNCLEAN, WRONG_CODE, WRONG_END = "unclean close", "wrong close code", "no failure of the connection"

Event: TypeAlias = tuple[str, bytes]


@dataclass(frozen=True)
class Frame:
    """`kind` is one of KINDS, `opN`, `raw` for bytes of the stream, `wait` or `pause`."""

    kind: str
    payload: bytes = b""
    fin: bool = True
    reserved: int = 0

    @property
    def opcode(self) -> int:
        return int(self.kind[2:]) if self.kind.startswith("op") else KINDS[self.kind]

    def encoded(self) -> bytes:
        if self.kind == "raw":
            return self.payload
        size = len(self.payload)
        first = self.fin << 7 | self.reserved << 4 | self.opcode
        if size < 126:
            head = bytes([first, 0x80 | size])
        elif size < 1 << 16:
            head = bytes([first, 0xFE]) + size.to_bytes(2, "big")
        else:
            head = bytes([first, 0xFF]) + size.to_bytes(8, "big")
        masked = self.payload.translate(bytes(byte ^ MASK for byte in range(256)))
        return head + bytes([MASK] * 4) + masked


@dataclass(frozen=True)
class Case:
    """What is sent, the events that are right (the first) or not strict, and how it must end."""

    number: str
    sent: Sequence[Frame]
    right: Sequence[Sequence[Event]]
    end: str
    codes: Sequence[int]
    options: dict[str, int] = field(default_factory=dict)


HELLO = Case("hello", [Frame("text", b"hello")], [[("text", b"hello")]], "close", [1000])
"""None of the suite: an echo, and a clean end."""


def _words(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
    return list(lexer)


def _payload(kind: str, text: str) -> bytes:
    if kind == "close" and text:
        code, _, reason = text.partition(",")
        return int(code).to_bytes(2, "big") + _payload("", reason)
    found = REPEATED.fullmatch(text)
    count, text = (int(found[1]), found[2]) if found else (1, text)
    plain, _ = codecs.escape_decode(text.encode("latin-1"))
    return bytes(plain) * count


def _frame(word: str) -> Frame:
    if word in ("wait", "pause"):
        return Frame(word)
    found = WORD.fullmatch(word)
    if found is None:
        raise LabError(f"{FILE.name}: what is {word!r}?")
    minus, reserved, kind, number, payload = found.groups()
    return Frame(kind + number, _payload(kind, payload), not minus, int(reserved or 0))


def _fragmented(frames: Sequence[Frame], size: int) -> Iterator[Frame]:
    for frame in frames:
        pieces = range(0, max(len(frame.payload), 1), size)
        for at in pieces:
            fin = at + size >= len(frame.payload)
            yield Frame("more" if at else frame.kind, frame.payload[at : at + size], fin)


def _echoed(frames: Sequence[Frame]) -> list[Event]:
    """The events that an echo of these frames is."""
    events: list[Event] = []
    kind, message = "", b""
    for frame in frames:
        if frame.kind == "ping":
            events.append(("pong", frame.payload))
        elif frame.kind in ("text", "binary", "more"):
            kind, message = (frame.kind, b"") if frame.kind != "more" else (kind, message)
            message += frame.payload
            if frame.fin:
                events.append((kind, message))
    return events


def _case(line: str) -> Iterator[Case]:
    number, *words = _words(line)
    options: dict[str, int] = {}
    if words[0] == "utf8":
        for count, digits in enumerate(words[1:], 1):
            text = bytes.fromhex(digits)
            place, frames = f"{number}.{count}", [Frame("text", text)]
            try:
                text.decode()
                yield Case(place, frames, [[("text", text)]], "close", [1000])
            except UnicodeDecodeError:
                yield Case(place, frames, [[]], "refuse", [1007])
        return
    while "=" in words[0] or words[0] == "frames":
        name, _, value = words.pop(0).partition("=")
        options[name] = int(value or 1)
    arrow, semicolon = words.index("=>"), words.index(";")
    frames = [_frame(word) for word in words[:arrow]]
    right: list[list[Event]] = [[]]
    for word in words[arrow + 1 : semicolon]:
        if word == "or":
            right.append([])
        elif word == "same":
            right[-1] += _echoed(frames)
        elif word not in ("nothing", "any"):
            frame = _frame(word)
            right[-1].append((frame.kind, frame.payload))
    end_word, *codes = words[semicolon + 1 :]
    if size := options.get("fragments"):
        frames = list(_fragmented(frames, size))
    yield Case(number, frames, right, end_word, [int(code) for code in codes], options)


def cases(most: int = 0) -> list[Case]:
    """All, or those that send no more bytes than that."""
    lines = FILE.read_text(encoding="ascii").splitlines()
    found = [case for line in lines if line and line[0] != "#" for case in _case(line)]
    return [case for case in found if not most or _size(case) <= most]


def _size(case: Case) -> int:
    frames = sum(len(frame.payload) + 6 for frame in case.sent)
    # Small pieces take longer than their bytes.
    return frames * case.options.get("repeat", 1) * (16 if "chop" in case.options else 1)


class _Peer:
    """The client's end of a WebSocket whose handshake is over, and what has come on it."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.events: list[Event] = []
        self.closed: bytes | None = None
        """Payload of the server's close frame."""
        self.ended = False
        self._read = bytearray()
        self._kind, self._message = "", bytearray()

    @property
    def is_open(self) -> bool:
        return self.closed is None and not self.ended

    def send(self, data: bytes) -> None:
        """Sends, and takes what comes meanwhile; nothing if the connection has ended."""
        view = memoryview(data)
        while view and not self.ended:
            self.socket.settimeout(0)
            try:
                view = view[self.socket.send(view) :]
            except BlockingIOError:
                self.receive(0.01)
            except OSError:
                self.receive(SILENCE)
                return

    def receive(self, seconds: float) -> bool:
        """Takes what comes within this time; False if nothing does."""
        if self.ended:
            return False
        self.socket.settimeout(max(seconds, 0.0001))
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError:
            return False
        except OSError:
            data = b""
        self.ended = not data
        self._read += data
        while self._take():
            pass
        return True

    def receive_for(self, seconds: float, count: int = sys.maxsize) -> None:
        """Takes what comes until there are so many events, or the connection is over."""
        until = time.monotonic() + seconds
        while self.is_open and len(self.events) < count:
            left = until - time.monotonic()
            if left <= 0 or not self.receive(left):
                return

    def _take(self) -> bool:
        """Takes a frame, if all of it is there."""
        if len(self._read) < 2 or self.closed is not None:
            return False
        first, size, at = self._read[0], self._read[1] & 0x7F, 2
        if size >= 126:
            octets = 2 if size == 126 else 8
            size, at = int.from_bytes(self._read[2 : 2 + octets], "big"), 2 + octets
        if len(self._read) < at + size:
            return False
        payload = bytes(self._read[at : at + size])
        del self._read[: at + size]
        kind = NAMES.get(first & 0xF, f"op{first & 0xF}")
        if kind == "close":
            self.closed = payload
        elif kind in ("text", "binary", "more"):
            if kind != "more":
                self._kind, self._message = kind, bytearray()
            self._message += payload
            if first & 0x80:
                self.events.append((self._kind, bytes(self._message)))
        else:
            self.events.append((kind, payload))
        return True


def run(case: Case, connection: socket.socket) -> str:
    """The verdict, on a connection of which the handshake is over."""
    peer = _Peer(connection)
    enough = len(case.right[0]) or sys.maxsize
    seconds = LONG if _size(case) > MUCH else SILENCE
    for _ in range(case.options.get("repeat", 1)):
        peer.events.clear()
        _send(case, peer)
        peer.receive_for(seconds, enough)
    # What comes too much comes at once.
    if case.end == "close":
        peer.receive_for(0.01)
    by_us = case.end in ("closed", "cut")
    if case.end == "close" and peer.is_open:
        by_us = True
        peer.send(Frame("close", case.codes[0].to_bytes(2, "big")).encoded())
    until = time.monotonic() + SILENCE
    while not peer.ended and time.monotonic() < until:
        peer.receive(until - time.monotonic())
    return _judged(case, peer, by_us)


def _send(case: Case, peer: _Peer) -> None:
    chop, alone = case.options.get("chop", 0), "frames" in case.options
    held = b""
    # At the end, what is still held goes out.
    for frame in (*case.sent, Frame("end")):
        if frame.kind not in ("wait", "pause", "end"):
            held += frame.encoded()
            if not alone:
                continue
        # Each piece is a segment: TCP_NODELAY is set.
        for at in range(0, len(held), chop or len(held) or 1):
            peer.send(held[at : at + (chop or len(held))])
        held = b""
        if frame.kind in ("wait", "pause"):
            peer.receive_for(WAIT)
            if not peer.is_open:
                return
            if frame.kind == "pause":
                peer.events.append(("pause", b""))


def _judged(case: Case, peer: _Peer, by_us: bool) -> str:
    if case.end == "any":
        return ANY
    if peer.events == list(case.right[0]):
        verdict = OK
    elif peer.events in [list(events) for events in case.right[1:]]:
        verdict = NOT_STRICT
    else:
        verdict = FAILED
    code = int.from_bytes(peer.closed[:2], "big") if peer.closed else None
    remark = ""
    failed = peer.closed is not None or peer.ended
    if not by_us and (case.end == "close" or not failed):
        remark = WRONG_END
    elif case.end in ("close", "closed") and (peer.closed is None or not peer.ended):
        remark = UNCLEAN
    elif code is not None and code not in case.codes:
        remark = WRONG_CODE
    if remark == WRONG_END and case.end == "refuse":
        verdict = FAILED
    return ", ".join(filter(None, (verdict, remark)))


HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@contextlib.contextmanager
def upgraded(port: int) -> Iterator[socket.socket]:
    """A WebSocket, its handshake over. Raises OSError, or LabError if it was refused."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(HANDSHAKE)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            # One byte at a time: behind the head come frames.
            data = connection.recv(1)
            if not data:
                break
            head += data
        status = head.split(b"\r\n", 1)[0].decode("latin-1")
        if not status.startswith("HTTP/1.1 101"):
            raise LabError(f"the handshake was refused: {status or 'closed'}")
        yield connection
