"""WebSocket and TLS clients on connections that stay open: `-m loadtests.clients.sockets`.

It has so many WebSockets, and as many over TLS, on which a message is echoed now and then, and
clients that ask for pages on kept TLS connections. A WebSocket that the server closes is opened
again at once. As `loadtests.clients.steady` it says `ready`, and answers each line on its standard
input with what has happened so far, as JSON; behind `end` all have closed.

A close is clean if the server says 1001 (going away) in a close frame and then ends the connection;
over TLS with close_notify. No handshake and no request may fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from asyncio import StreamReader, StreamWriter
from collections import Counter
from random import Random
from typing import Any

from loadtests.clients.client_process import answer_lines
from loadtests.clients.connection import request_bytes, unverified
from loadtests.measure.machine import allow_files
from loadtests.measure.waiting import patience

SILENCE = patience(30.0)
"""Seconds after which a client gives up."""
PAUSE = 1.0
"""The longest between two messages."""
THINK = 0.3
"""The longest between two requests: less than ours reads from idle connections when it stops."""
DRAIN = 1.0
"""Seconds for which ours reads from them."""
TEXT, CLOSE = 1, 8
GOING_AWAY, NORMAL = 1001, 1000
HANDSHAKE = request_bytes(
    "/echo",
    [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Version", "13"),
    ],
)
PAGE = request_bytes("/")


class Unclean(Exception):
    """What was wrong with an answer, or with an end of a connection."""


def frame(opcode: int, payload: bytes) -> bytes:
    """A short frame as a client sends it; the mask is of zeros."""
    return bytes([0x80 | opcode, 0x80 | len(payload), 0, 0, 0, 0]) + payload


async def _take(reader: StreamReader) -> tuple[int, bytes]:
    """A short frame of the server."""
    first, size = await reader.readexactly(2)
    return first & 0xF, await reader.readexactly(size)


class World:
    """What all clients share, and count.

    Attributes:
        counts: clean closes, echoes and answers.
        faults: kinds of what went wrong.
        shown: the first of them, in words.
    """

    def __init__(self, port: int, tls_port: int) -> None:
        self.counts = Counter[str]()
        self.faults = Counter[str]()
        self.shown: list[dict[str, Any]] = []
        self.open = 0
        self.over = asyncio.Event()
        self._ports = port, tls_port

    async def connect(self, *, tls: bool) -> tuple[StreamReader, StreamWriter]:
        context = unverified() if tls else None
        return await asyncio.open_connection("127.0.0.1", self._ports[tls], ssl=context)

    async def repeat(self, what: str, client: Any, *, tls: bool, seed: int) -> None:
        """Has a client connect again and again until the end, and counts what fails."""
        random = Random(seed)
        while not self.over.is_set():
            writer = None
            try:
                reader, writer = await asyncio.wait_for(self.connect(tls=tls), SILENCE)
                await client(reader, writer, random)
            except (OSError, Unclean, EOFError, TimeoutError, asyncio.TimeoutError) as error:
                self.fault(what, error, tls=tls)
                await asyncio.sleep(0.1)
            finally:
                if writer:
                    writer.close()
                    with contextlib.suppress(OSError, TimeoutError, asyncio.TimeoutError):
                        await asyncio.wait_for(writer.wait_closed(), 1)

    def fault(self, what: str, error: Exception, *, tls: bool) -> None:
        kind = (str(error) or type(error).__name__) + " (at the end)" * self.over.is_set()
        self.faults[what] += 1
        if len(self.shown) < 100:
            sent = f"{what}{' over TLS' if tls else ''}"
            self.shown.append({"sent": sent, "what": kind, "at": round(time.monotonic(), 3)})

    async def pause(self, seconds: float) -> None:
        """Waits, but not beyond the end."""
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(self.over.wait(), seconds)

    async def websocket(self, reader: StreamReader, writer: StreamWriter, random: Random) -> None:
        """Has messages echoed until the server closes, or all is over."""
        writer.write(HANDSHAKE)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SILENCE)
        if not head.startswith(b"HTTP/1.1 101"):
            raise Unclean(head.split(b"\r\n")[0].decode("latin-1"))
        self.open += 1
        try:
            await self._messages(reader, writer, random)
        finally:
            self.open -= 1

    async def _messages(self, reader: StreamReader, writer: StreamWriter, random: Random) -> None:
        over = asyncio.create_task(self.over.wait())
        taken = asyncio.create_task(_take(reader))
        waiting = b""
        try:
            while True:
                seconds = SILENCE if waiting else random.random() * PAUSE
                await asyncio.wait({over, taken}, timeout=seconds, return_when="FIRST_COMPLETED")
                if taken.done():
                    opcode, payload = taken.result()
                    if opcode == CLOSE:
                        await self._closed(reader, writer, payload, GOING_AWAY)
                        return
                    if payload != waiting:
                        raise Unclean(f"{payload!r} came back for {waiting!r}")
                    self.counts["echoes"] += 1
                    waiting = b""
                    taken = asyncio.create_task(_take(reader))
                elif over.done():
                    writer.write(frame(CLOSE, NORMAL.to_bytes(2, "big")))
                    while (got := await asyncio.wait_for(taken, SILENCE))[0] != CLOSE:
                        taken = asyncio.create_task(_take(reader))
                    await self._closed(reader, writer, got[1], NORMAL, GOING_AWAY)
                    return
                elif waiting:
                    raise Unclean("no echo")
                else:
                    waiting = b"%d" % random.getrandbits(32)
                    writer.write(frame(TEXT, waiting))
        finally:
            over.cancel()
            taken.cancel()

    async def _closed(
        self, reader: StreamReader, writer: StreamWriter, payload: bytes, *codes: int
    ) -> None:
        """Answers a close frame; the connection must end, and orderly."""
        code = int.from_bytes(payload[:2], "big")
        if code not in codes:
            raise Unclean(f"closed with {code}")
        if code == GOING_AWAY:
            with contextlib.suppress(OSError):
                writer.write(frame(CLOSE, payload))
        if await asyncio.wait_for(reader.read(1), SILENCE):
            raise Unclean("something comes behind the close frame")
        self.counts[f"closed with {code}"] += 1

    async def page_client(self, reader: StreamReader, writer: StreamWriter, random: Random) -> None:
        """Requests a page until the server closes the connection, which it may only when idle.

        On a busy machine a client may be later than it means to be.
        """
        asked = time.monotonic()
        while not self.over.is_set():
            await self.pause(random.random() * THINK)
            if reader.at_eof():
                self.counts["idle connections closed"] += 1
                return
            silent, asked = time.monotonic() - asked, time.monotonic()
            writer.write(PAGE)
            try:
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SILENCE)
            except (asyncio.IncompleteReadError, OSError) as error:
                is_begun = isinstance(error, asyncio.IncompleteReadError) and error.partial
                if silent < DRAIN or is_begun:
                    raise
                self.counts["idle connections closed"] += 1
                return
            body = await asyncio.wait_for(reader.readexactly(len(b"ready\n")), SILENCE)
            if not head.startswith(b"HTTP/1.1 200") or body != b"ready\n":
                raise Unclean(f"{head[:100]!r} {body!r}")
            self.counts["answers"] += 1
            if b"\r\nconnection: close" in head.lower():
                return

    async def run(self, websockets: int, page_clients: int) -> None:
        clients = [
            self.repeat("websocket", self.websocket, tls=tls, seed=number)
            for number in range(websockets)
            for tls in (False, True)
        ]
        clients += [
            self.repeat("page client", self.page_client, tls=True, seed=n)
            for n in range(page_clients)
        ]
        await asyncio.gather(*clients)

    def told(self) -> dict[str, Any]:
        told = {"open": self.open, "counts": self.counts, "faults": self.faults}
        return told | {"shown": self.shown}


def main(port: str, tls_port: str, websockets: str, page_clients: str) -> None:
    """The command line; only the lab uses it."""
    allow_files(2 * int(websockets) + int(page_clients) + 100)
    loop = asyncio.new_event_loop()
    world = World(int(port), int(tls_port))
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(world.run(int(websockets), int(page_clients)))
    )
    thread.start()

    def answer(word: str) -> object:
        if word == "end":
            loop.call_soon_threadsafe(world.over.set)
            thread.join()
        return world.told()

    try:
        answer_lines(answer)
    finally:
        loop.call_soon_threadsafe(world.over.set)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(*sys.argv[1:])
