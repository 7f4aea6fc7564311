"""TLS on connections: requests, responses of every shape, orderly ends, failing handshakes.

The clients use OpenSSL, by Python's `ssl`. Certificates are in test_certificates.py.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from poorhttp.plugins.native import use_kernel_tls
from tests.apps import streamed
from tests.conftest import Serve
from tests.support.certificate import certificate
from tests.support.forked_command import run_command
from tests.support.tls_client import BIND, VERSIONS, context, write
from tests.testkit.client import Connection, receive
from tests.testkit.server import Server, wait_for

ALONE = True

ANSWERS = "tests/apps/answers.py"
ECHO = "tests/apps/echo.py"
#: Versions and ciphers for which the kernel encrypts.
KERNEL = use_kernel_tls()

#: Responses of `ANSWERS`, and their bodies.
SHAPES = {
    "/one": b"hello",
    "/several": b"one two three",
    "/empty": b"",
    "/generated": b"one two three",
    "/generated_length": b"one two",
    "/large": b"0123456789" * 500_000,
    "/large_generated": b"0123456789" * 500_000,
}


def plain(server: Server) -> Connection:
    """A connection without TLS."""
    return Connection(("127.0.0.1", server.port))


def secure(server: Server, version: str = "1.3") -> Connection:
    """A connection with TLS, whose end is an error if it is not announced."""
    made = context(version)
    made.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    connection = plain(server)
    connection.socket = made.wrap_socket(
        connection.socket, server_hostname="localhost", suppress_ragged_eofs=False
    )
    return connection


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate, its key, and files to serve."""
    folder = tmp_path_factory.mktemp("tls")
    write(folder, "site.pem", certificate().issued)
    (folder / "static" / "folder").mkdir(parents=True)
    (folder / "static" / "folder" / "index.html").write_text("index")
    (folder / "static" / "large").write_bytes(bytes(range(250)) * 20_000)
    return folder


Servers = Callable[..., Server]


@pytest.fixture
def servers(serve: Serve, files: Path) -> Servers:
    """Starts a server with TLS for an application, or returns the one that runs already."""
    tls = ("--tls-certificate", str(files / "site.pem"))
    return lambda app, *options: serve(app, *tls, *options, bind=BIND)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.each_mode
def test_responses_of_every_shape(servers: Servers, version: str) -> None:
    with secure(servers(ANSWERS), version) as connection:
        for _ in range(2):
            for path, body in SHAPES.items():
                answer = connection.request("GET", path)
                assert (answer.status, answer.body) == (200, body), path
                assert connection.request("HEAD", path).body == b""


def test_bodies_that_are_streamed(servers: Servers) -> None:
    """In every mode, without TLS, by tests/protocol/test_streamed_bodies.py."""
    server = servers("tests/apps/streamed.py", "--stream-request-body", "on")
    body = bytes(range(256)) * 8_000
    with secure(server) as connection:
        for way in streamed.WAYS:
            answer = connection.request("POST", f"/{way}", body=body)
            assert answer.body == streamed.summary(body), way
        answer = connection.request("POST", "/echo", body=body)
        assert answer.body == body


def kernel_sessions() -> int:
    """Connections of this machine for which the kernel has encrypted."""
    found = re.search(r"TlsTxSw\s+(\d+)", Path("/proc/net/tls_stat").read_text())
    assert found
    return int(found[1])


def test_a_connection_goes_on_behind_large_files(
    servers: Servers, version: str, files: Path
) -> None:
    # The kernel encrypts what follows the first, where it can: see tests/system/kernel_tls.sh.
    server = servers(ECHO, "--static", f"/static={files / 'static'}", "--kernel-tls", "on")
    large = (files / "static" / "large").read_bytes()
    with secure(server, version) as connection:
        assert connection.request("POST", "/", body=b"v").json()["body"] == "v"
        before = kernel_sessions() if KERNEL else 0
        for size in (1, 100_000, 3_000_000):
            assert connection.request("GET", "/static/large").body == large
            assert connection.request("POST", "/", body=b"v" * size).json()["body"] == "v" * size
        # Other tests may run meanwhile.
        assert not KERNEL or kernel_sessions() > before
        connection.send(b"GET /static/large HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
        assert all(connection.response().body == large for _ in range(5))
        connection.send_request("GET", "/static/large", "Connection: close")
        assert connection.response().body == large
        # Without close_notify, that would be an error.
        assert connection.at_end()


def test_check_says_what_the_kernel_has(files: Path) -> None:
    tls = ("--tls-certificate", str(files / "site.pem"), "--bind", *BIND)
    line = f"kernel TLS: {', '.join(KERNEL) or 'not in this kernel'}\n"
    assert line in run_command("check", ANSWERS, *tls, "--kernel-tls", "on").stdout
    assert "kernel TLS" not in run_command("check", ANSWERS, *tls).stdout


def test_what_the_application_is_told(servers: Servers, version: str) -> None:
    with secure(servers(ECHO), version) as connection:
        # The second is from the cache of the connection.
        for _ in range(3):
            environ = connection.request("GET", "/").json()["environ"]
            assert environ["wsgi.url_scheme"] == "https"
            assert environ["SSL_PROTOCOL"] == f"TLSv{version}"
        absolute = connection.request("GET", "https://test/there").json()["environ"]
        assert (absolute["PATH_INFO"], absolute["HTTP_HOST"]) == ("/there", "test")


def test_a_proxy_protocol_header_in_one_piece_with_the_handshake(servers: Servers) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    server = servers(ECHO, "--trusted-proxies", "127.0.0.1", "--proxy-protocol", "on")
    with plain(server) as connection:
        outgoing.write(b"PROXY TCP4 203.0.113.1 127.0.0.1 4711 443\r\n")

        def until_done(call: Callable[[], Any]) -> Any:
            while True:
                with suppress(ssl.SSLWantReadError):
                    return call()
                connection.send(outgoing.read())
                incoming.write(connection.socket.recv(65_536))

        until_done(session.do_handshake)
        session.write(b"GET / HTTP/1.0\r\n\r\n")
        wait_for(lambda: b"203.0.113.1" in until_done(session.read), "it")


def record(kind: int, content: bytes, version: bytes = b"\x03\x03") -> bytes:
    """One record, not encrypted."""
    return bytes([kind]) + version + len(content).to_bytes(2, "big") + content


def client_hello(version: int, ciphers: bytes = b"\xc0\x2b", extensions: bytes = b"") -> bytes:
    """The first record of a client that knows no version after this one."""
    body = bytes([3, version]) + b"r" * 32 + b"\0" + len(ciphers).to_bytes(2, "big") + ciphers
    body += b"\1\0" + len(extensions).to_bytes(2, "big") + extensions
    return record(22, b"\1" + len(body).to_bytes(3, "big") + body, bytes([3, min(version, 1)]))


#: What a client may send instead of a handshake, and the number of its alert (RFC 8446 section 6):
#: 10 is unexpected_message, 22 record_overflow, 40 handshake_failure, 50 decode_error.
LARGE = b"a" * 16_000
BROKEN: dict[str, tuple[bytes, int]] = {
    "zeros": (b"\0" * 100, 10),
    "content": (record(23, b"ab"), 10),
    "no message": (record(22, b""), 50),
    "a message of the server": (record(22, b"\2\0\0\4abcd"), 50),
    "a message of 16 MB": (record(22, b"\1\xff\xff\xff" + LARGE), 50),
    "a message of 40 KB": (record(22, b"\1\0\xa0\0" + LARGE) + record(22, LARGE) * 2, 50),
    "the head of a record of 18 KB": (b"\x16\3\1\x48\1", 22),
    "TLS 1.0": (client_hello(1), 70),
    "TLS 1.1": (client_hello(2), 70),
    "an unknown cipher": (client_hello(3, b"\x0a\x0a"), 40),
    "a cut extension": (client_hello(3, extensions=b"\0\x17\0\x09\0"), 50),
}


def test_a_failed_handshake_ends_with_its_alert(servers: Servers) -> None:
    """Though the client has sent more than the server reads: a reset would destroy the alert."""
    server = servers(ECHO)
    for name, (sent, alert) in BROKEN.items():
        with plain(server) as connection:
            with suppress(ConnectionError):
                connection.send(sent + b"z" * 3_000_000)
            # As a message of 16 MB, what follows is not looked at.
            expected = rb"\x15\x03.\x00\x02\x02%b" % re.escape(bytes([alert]))
            found = connection.rest()
            assert re.fullmatch(expected, found, re.S), (name, alert, found)
    with secure(server) as connection:
        assert connection.request("GET", "/").status == 200


def test_a_session_that_fails_ends_with_its_alert(servers: Servers, version: str) -> None:
    """After the handshake, and although the client goes on sending."""
    for sent, alert in ((record(23, b"x" * 40), "bad.record.mac"), (b"garbage", "")):
        with secure(servers(ECHO), version) as connection:
            sock = connection.socket
            assert isinstance(sock, ssl.SSLSocket)
            with socket.socket(fileno=os.dup(sock.fileno())) as raw, suppress(ConnectionError):
                raw.sendall(sent + b"y" * 3_000_000)
            with pytest.raises(ssl.SSLError, match=f"(?i)alert.{alert}"):
                sock.recv(1)


def test_a_client_that_finds_no_room_is_told_so(mode: str, files: Path) -> None:
    """Without a handshake, by an alert."""
    options = ("--tls-certificate", str(files / "site.pem"), "--max-connections", "2")
    with Server(ECHO, mode, *options, "--workers", "1", bind=BIND) as server:
        busy = [secure(server) for _ in range(2)]
        for connection in busy:
            assert connection.request("GET", "/").status == 200
            connection.send(b"GET / HTTP/1.1\r\n")

        def alert() -> bool:
            with suppress(ConnectionError):
                secure(server).close()
            return False

        with pytest.raises(ssl.SSLError, match=r"(?i)alert.internal.error"):
            wait_for(alert, "no room")
        for connection in busy:
            connection.close()


def test_a_client_that_does_not_trust_the_certificate_is_logged(servers: Servers) -> None:
    server = servers(ECHO)
    with plain(server) as connection, pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(connection.socket, server_hostname="localhost")
    server.wait_log("a TLS handshake of 127.0.0.1:")
    server.wait_log("has failed: received fatal alert")
    # Those that only shake hands are no fault.
    for _ in range(40):
        secure(server).close()


def test_an_upload_that_is_cut_off_is_no_request(servers: Servers) -> None:
    server = servers(ECHO)
    for orderly in (False, True):
        connection = secure(server)
        connection.send_request("POST", "/cut", "Content-Length: 1000")
        connection.send(b"x" * 999)
        before = server.log().count("the client left in the middle of it")
        if orderly:
            sock = connection.socket
            assert isinstance(sock, ssl.SSLSocket)
            sock.setblocking(False)
            with pytest.raises((ssl.SSLWantReadError, OSError)):
                sock.unwrap()
        connection.close()
        server.wait_log("the client left in the middle of it", before + 1)
    assert "ran POST /cut" not in server.log()


def test_a_response_that_is_too_late_is_replaced(servers: Servers) -> None:
    """By another thread than the one that serves."""
    server = servers("tests/apps/slow.py", "--request-timeout", "0.6", "--workers", "1")
    with secure(server) as connection:
        assert connection.request("GET", "/nap").status == 504
        assert connection.request("GET", "/", "X-Name: me").body == b"me"


def test_idle_connections_are_ended_by_a_stop(mode: str, files: Path) -> None:
    options = ("--tls-certificate", str(files / "site.pem"), "--drain-timeout", "0")
    with (
        Server(ECHO, mode, *options, bind=BIND) as server,
        secure(server) as idle,
        plain(server) as begun,
    ):
        assert idle.request("GET", "/").status == 200
        # The beginning of a record that begins a handshake.
        begun.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        server.process.send_signal(signal.SIGTERM)
        assert idle.at_end()
        assert begun.at_end()
        assert server.wait() == 0
        server.ended()


def test_an_application_takes_a_connection(servers: Servers) -> None:
    """It gets one end of a pair of sockets; a thread of the core copies.

    In every mode, without TLS, by tests/modes/test_protocol_upgrade.py.
    """
    server = servers("tests/apps/protocol_upgrade.py")
    proposal = b"GET /echo HTTP/1.1\r\nHost: x\r\nUpgrade: chat\r\nConnection: Upgrade\r\n\r\n"
    with secure(server) as connection:
        # In one record with what follows.
        connection.send(proposal + b"early ")
        connection.send(b"late")
        head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: chat\r\nConnection: Upgrade\r\n\r\n"
        assert receive(connection, len(head)) == head
        assert receive(connection, 10) == b"early late"
        for content in (b"one", bytes(range(256)) * 4_000, *[bytes(range(256)) * 400] * 20):
            connection.send(content)
            assert receive(connection, len(content)) == content
        connection.send(b"end")
        assert connection.at_end()
    # It learns of the end of a connection that it has taken.
    with secure(server) as connection:
        connection.send(proposal)
        receive(connection, 20)
    with secure(server) as connection:
        assert connection.request("GET", "/plain").status == 200
