"""HTTP/2 clients of a steady load: lost streams are faults; those after GOAWAY are sent again."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived

from loadtests.apps.content import content
from loadtests.clients.steady import clients as steady
from loadtests.clients.steady import http2_line, known_requests
from loadtests.clients.steady.connection import Fault
from tests.lab.accepting import Accepting


class Scripted(Accepting):
    """A server that answers `/small`, with a fault at the third stream of its first connection."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        super().__init__()

    def serve(self, connection: socket.socket) -> None:
        fault = self.fault if self.connections == 1 else ""
        with connection, suppress(OSError):
            self._serve(connection, fault)

    def _serve(self, sock: socket.socket, fault: str) -> None:
        made = H2Connection(H2Configuration(client_side=False, header_encoding="latin-1"))
        made.initiate_connection()
        sock.sendall(made.data_to_send())
        streams = 0
        while data := sock.recv(65_536):
            for event in made.receive_data(data):
                if isinstance(event, DataReceived):
                    made.acknowledge_received_data(event.flow_controlled_length or 0, 1)
                if isinstance(event, RequestReceived):
                    streams += 1
                    self.window = made.remote_settings.initial_window_size
                    number = event.stream_id or 0
                    fields = {str(name): str(value) for name, value in event.headers or ()}
                    self._answer(made, number, fields, fault if streams == 3 else "")
                    if streams == 3 and fault:
                        sock.sendall(made.data_to_send())
                        if fault not in ("RST_STREAM", "REFUSED_STREAM"):
                            # With unread data, `close` would reset the connection.
                            sock.shutdown(socket.SHUT_WR)
                            while sock.recv(65_536):
                                pass
                            return
            sock.sendall(made.data_to_send())

    def _answer(self, made: H2Connection, number: int, fields: dict[str, str], fault: str) -> None:
        if fault == "GOAWAY":
            made.close_connection(ErrorCodes.NO_ERROR, last_stream_id=number - 2)
        elif fault == "GOAWAY behind it":
            made.close_connection(ErrorCodes.NO_ERROR, last_stream_id=number)
        elif fault == "REFUSED_STREAM":
            made.reset_stream(number, ErrorCodes.REFUSED_STREAM)
        elif fault == "RST_STREAM":
            made.reset_stream(number, ErrorCodes.INTERNAL_ERROR)
        elif fault != "closed":
            token = fields["x-token"]
            size = int(fields[":path"].partition("size=")[2].partition("&")[0])
            names = ("x-token", "x-token-header")
            answer = [(":status", "200"), *((name, token) for name in names), ("x-process", "7")]
            made.send_headers(number, answer)
            body = content(token, size)
            made.send_data(
                number, body[: size - 1 if fault == "short" else size], end_stream=not fault
            )


@pytest.fixture
def client() -> Iterator[steady.Client]:
    """One that has not connected yet."""
    made = steady.Client(steady.World(0, 10, protocol="h2c"), "thinking", 0, 1)
    yield made
    made.hang_up()


@pytest.mark.parametrize(("fault", "count"), [("GOAWAY", 3), ("REFUSED_STREAM", 1)])
def test_what_is_not_processed_is_sent_again(fault: str, count: int, client: steady.Client) -> None:
    with closing(Scripted(fault)) as server:
        client.world.port = server.port
        asked = [client.make(known_requests.plain("small")) for _ in range(5)]
        client.ask(asked)
    assert not asked
    assert server.window == http2_line.WINDOW
    assert (client.world.tally.requests, client.world.tally.failed) == (5, 0)
    assert client.world.tally.unlucky["not processed, and sent again"] == count


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("GOAWAY behind it", "closed"),
        ("closed", "closed"),
        ("short", "short"),
        ("RST_STREAM", "reset"),
    ],
)
def test_a_lost_stream_is_a_fault(fault: str, kind: str, client: steady.Client) -> None:
    with closing(Scripted(fault)) as server:
        client.world.port = server.port
        asked = [client.make(known_requests.plain("small")) for _ in range(3)]
        with pytest.raises(Fault) as raised:
            client.ask(asked)
    assert (raised.value.kind, raised.value.requests) == (kind, 1)
    assert client.world.tally.requests == 2
