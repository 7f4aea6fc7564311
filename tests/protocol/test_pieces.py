"""Responses in pieces: those made quickly leave together, and none waits for the next one."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

import pytest

from tests.apps.pieces import MANY
from tests.conftest import Serve
from tests.testkit.client import Connection
from tests.testkit.server import Server

ALONE = True

pytestmark = pytest.mark.each_mode

PIECES = "tests/apps/pieces.py"
MANY_PIECES = b"".join(b"%04d" % number for number in range(MANY))


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve(PIECES)


def segments(connection: Connection) -> int:
    """Segments with data that have come on a connection (`tcpi_data_segs_in`)."""
    info = connection.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 160)
    (found,) = struct.unpack_from("I", info, 152)
    return int(found)


@pytest.mark.parametrize("path", ["/many", "/declared"])
def test_pieces_made_quickly_leave_together(server: Server, path: str) -> None:
    with server.connect() as connection:
        for count in (1, 2):
            assert connection.request("GET", path).body == MANY_PIECES
            # One for each piece if each were sent at once; one each millisecond now.
            assert segments(connection) < count * MANY / 4


def test_no_piece_waits_for_the_next(server: Server, tmp_path: Path) -> None:
    """The application makes the fourth only when the client has the three before."""
    for number in range(3):
        gate = tmp_path / str(number)
        with server.connect() as connection:
            connection.send_request("GET", f"/gate?{gate}")
            while b"three," not in connection.socket.recv(65_536, socket.MSG_PEEK):
                pass
            gate.touch()
            assert connection.response().body == b"one,two,three,four"
