"""A client in C that has WebSocket messages echoed."""

from __future__ import annotations

from pathlib import Path

from loadtests.clients.load import Load
from loadtests.clients.native import compiled
from loadtests.clients.program import run

SOURCE = Path(__file__).with_name("websocket.c")


def drive(
    port: int, seconds: float, connections: int, size: int, target: str, core: int | None
) -> Load:
    """Messages of `size` bytes on so many connections, each sent when the last has come back.

    The requests of the load are messages. A failed handshake is an error, and then there are none.
    """
    words = port, connections, f"{seconds:g}", size, target
    return run([str(compiled.program(SOURCE)), *map(str, words)], seconds + 10, core)
