"""HTTP/2 over real connections: requests and responses as in HTTP/1.1, in every mode (RFC 9113)."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import time
from pathlib import Path
from unittest.mock import patch

import psutil
import pytest

from tests.conftest import Serve
from tests.support import binary_upgrade
from tests.support.certificate import certificate
from tests.support.http2_client import Client, Stream
from tests.testkit import process
from tests.testkit.client import Connection
from tests.testkit.process import children
from tests.testkit.server import AT_ONCE, Program, Server, command, run, wait_for

ECHO = "tests/apps/echo.py"
ANSWERS = "tests/apps/answers.py"
GATE = "tests/apps/gate.py"
STREAMED = "tests/apps/streamed.py"
ON = "--http2=on"

ANYWHERE = ("127.0.0.1:0",)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

#: Codes of errors (RFC 9113 section 7).
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, REFUSED_STREAM, CANCEL = 0, 1, 2, 7, 8


def client(server: Server, **options: object) -> Client:
    """A connection with prior knowledge."""
    return Client(("127.0.0.1", server.port), **options)  # type: ignore[arg-type]


def tls(server: Server, *names: str) -> ssl.SSLSocket:
    """A connection with TLS that offers protocols (ALPN)."""
    made = certificate().client_context()
    if names:
        made.set_alpn_protocols(names)
    plain = socket.create_connection(("127.0.0.1", server.port_of("https")), 60)
    return made.wrap_socket(plain, server_hostname="localhost")


def text_of(stream: Stream) -> dict[str, str]:
    """The environ that the application `ECHO` has got."""
    assert stream.status == 200, stream
    return dict(json.loads(stream.body)["environ"])


# Ways in

#: Who may speak HTTP/2, by the values of the option: without TLS, without TLS from a trusted proxy,
#: over a Unix socket, by ALPN.
WAYS = {
    "off": (False, False, False, False),
    "tls": (False, False, False, True),
    "trusted": (False, True, True, True),
    "on": (True, True, True, True),
}


@pytest.mark.parametrize("value", WAYS)
def test_ways_in(value: str, folder: Path, tmp_path: Path) -> None:
    bind = (f"unix:{folder}/s", "https://127.0.0.1:0", "127.0.0.1:0")
    certificate().write(tmp_path / "pem")
    files = str(tmp_path / "pem")
    for trusted in (False, True):
        trust = ("--trusted-proxies", "127.0.0.1") if trusted else ()
        options = (f"--http2={value}", *trust, "--tls-certificate", files)
        plain, from_proxy, unix, alpn = WAYS[value]
        with Server(ECHO, "threading", *options, bind=bind) as server:
            port = server.port_of("http")
            places: list[tuple[tuple[str, int] | str, bool]] = [
                (("127.0.0.1", port), from_proxy if trusted else plain),
                (f"{folder}/s", unix),
            ]
            for address, admitted in places:
                if admitted:
                    with Client(address) as made:
                        assert text_of(made.get("/"))["SERVER_PROTOCOL"] == "HTTP/2"
                    continue
                with Connection(address) as connection:
                    connection.send(PREFACE)
                    refused = connection.response()
                    assert refused.status == 505
                    if value == "trusted":
                        assert "http2 = trusted" in server.log()
            with tls(server, "h2", "http/1.1") as sock:
                assert sock.selected_alpn_protocol() == ("h2" if alpn else "http/1.1")
                if alpn:
                    assert text_of(Client(sock).get("/"))["wsgi.url_scheme"] == "https"
            for names in (("http/1.1",), ("http/1.0",), ()):
                with tls(server, *names) as sock:
                    assert sock.selected_alpn_protocol() == (names[0] if names else None)
                    sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    assert sock.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_preface_behind_a_proxy_header(serve: Serve) -> None:
    server = serve(ECHO, "--trusted-proxies=127.0.0.1", "--proxy-protocol=on")
    header = b"PROXY TCP4 192.0.2.7 192.0.2.8 1234 80\r\n"
    with client(server, first=header) as made:
        assert text_of(made.get("/"))["REMOTE_ADDR"] == "192.0.2.7"
    with server.connect() as connection:
        connection.send(header + PREFACE[:20])
        # The rest of the preface is missing, and the client sends nothing else for it.
        connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"no preface of HTTP/2" in rest_of(connection.socket)


def rest_of(sock: socket.socket) -> bytes:
    """What comes until the end of a connection."""
    received = b""
    while data := sock.recv(65_536):
        received += data
    return received


# Requests and responses as in HTTP/1.1


@pytest.mark.each_mode
def test_responses(serve: Serve) -> None:
    server = serve(ANSWERS, ON)
    names = re.findall(r"^def (\w+)\(environ", Path(ANSWERS).read_text(), re.MULTILINE)
    with client(server) as made:
        for name in names[:-1]:
            for method in ("GET", "HEAD"):
                stream = made.get(f"/{name}", method=method)
                other = server.request(method, f"/{name}")
                assert (stream.status, stream.reset) == (other.status, None)
                assert stream.body == other.body
                ours = [(key.lower(), value) for key, value in other.headers]
                dropped = ("connection", "transfer-encoding", "date")
                expected = [field for field in ours if field[0] not in dropped]
                assert [field for field in stream.headers if field[0] != "date"] == expected
                assert stream.get("date")


@pytest.mark.each_mode
def test_the_environ(serve: Serve) -> None:
    server = serve(ECHO, ON)
    fields = (("user-agent", "me"), ("cookie", "a=1"), ("cookie", "b=2"), ("x-one", "a"))
    with client(server) as made, server.connect() as connection:
        body = b"0123456789" * 10_000
        for content in (b"", body):
            if content:
                length = ("content-length", str(len(content)))
                stream = made.post("/a%20b?c=d", content, *fields, length)
            else:
                stream = made.get("/a%20b?c=d", *fields)
            lines = ["User-Agent: me", "Cookie: a=1; b=2", "X-One: a"]
            method = "POST" if content else "GET"
            other = connection.request(method, "/a%20b?c=d", *lines, body=content or None)
            ours, theirs = json.loads(stream.body), other.json()
            assert ours["body"] == theirs["body"]
            different = {
                key
                for key in ours["environ"].keys() | theirs["environ"].keys()
                if ours["environ"].get(key) != theirs["environ"].get(key)
            }
            assert different <= {"SERVER_PROTOCOL", "REMOTE_PORT", "HTTP_HOST"}, different
            assert ours["environ"]["SERVER_PROTOCOL"] == "HTTP/2"


@pytest.mark.each_mode
def test_uploads(serve: Serve) -> None:
    body = bytes(range(256)) * 8_000
    expected = b"%d " % len(body)
    for options in ((), ("--stream-request-body=on",)):
        server = serve(STREAMED, ON, *options)
        with client(server) as made:
            for fields in ((), (("content-length", str(len(body))),)):
                for way in ("hash", "whole", "pieces", "lines"):
                    stream = made.post(f"/{way}", body, *fields)
                    assert (stream.status, stream.reset) == (200, None)
                    assert stream.body.startswith(expected), stream


def test_an_echo_while_it_comes(serve: Serve) -> None:
    server = serve(STREAMED, ON, "--stream-request-body=on")
    with client(server) as made:
        stream = made.begin("/echo", method="POST", ended=False)
        for piece in (b"one", b"two", b"three"):
            made.send(stream, piece)
            made.until(lambda piece=piece: stream.body.endswith(piece))  # type: ignore[misc]
        made.send(stream, ended=True)
        assert made.whole(stream).body == b"onetwothree"


def test_expectations_and_hints(serve: Serve) -> None:
    server = serve(ECHO, ON)
    with client(server) as made:
        stream = made.begin("/", ("expect", "100-continue"), method="POST", ended=False)
        made.until(lambda: stream.interim)
        made.send(stream, b"body", ended=True)
        assert json.loads(made.whole(stream).body)["body"] == "body"
        assert [each[":status"] for each in stream.interim] == ["100"]
    server = serve("tests/apps/hinting.py", ON, "--early-hints=on")
    with client(server) as made:
        stream = made.get("/gate?/")
        assert [each[":status"] for each in stream.interim] == ["103", "103"]
        assert stream.interim[1]["x-other"] == "1"
        assert stream.body == b"done"


#: Requests that the server refuses, and their statuses.
REFUSED: dict[str, tuple[list[tuple[str, str]], bytes, int]] = {
    "long line": ([(":path", "/" + 200 * "a")], b"", 414),
    "long field": ([("x-long", 200 * "a")], b"", 431),
    "many fields": ([("x-many", "a")] * 40, b"", 431),
    "large body": ([], 2_000 * b"a", 413),
    "announced": ([("content-length", "2000")], b"a", 413),
    "two lengths": ([("content-length", "1, 2")], b"a", 400),
    "connection": ([("connection", "close")], b"", 400),
    "capitals": ([("X-Name", "a")], b"", 400),
    "te": ([("te", "gzip")], b"", 400),
    "connect": ([(":method", "CONNECT")], b"", 501),
    "websocket": ([(":method", "CONNECT"), (":protocol", "websocket")], b"", 501),
    "trace": ([(":method", "TRACE")], b"", 501),
    "expectation": ([("expect", "a miracle")], b"", 417),
    "other host": ([("host", "b")], b"", 400),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(serve: Serve, name: str) -> None:
    small = ("--max-request-line=100", "--max-header-size=150", "--max-headers=30")
    server = serve(ECHO, ON, "--max-body=1000", *small)
    extra, body, status = REFUSED[name]
    pseudo = {":method": "POST" if body else "GET", ":scheme": "http"}
    pseudo |= {":authority": "a", ":path": "/"}
    pseudo |= {key: value for key, value in extra if key.startswith(":")}
    fields = [field for field in extra if not field[0].startswith(":")]
    with client(server) as made:
        stream = made.begin_with([*pseudo.items(), *fields], ended=not body)
        if body:
            made.send(stream, body, ended=True)
        made.until(lambda: stream.status and stream.is_over)
        assert stream.status == status
        if pseudo[":method"] != "HEAD":
            assert stream.body.decode().startswith(f"{status} ")
        # The other streams go on.
        assert made.get("/after").status == 200
        assert f"refused with {status}" in server.log()


def test_slow_clients(serve: Serve) -> None:
    server = serve(ECHO, ON, "--body-timeout=0.2", "--write-timeout=0.2", "--header-timeout=0.3")
    with client(server) as made:
        stream = made.begin("/", method="POST", ended=False)
        assert made.whole(stream).status == 408
        assert made.get("/after").status == 200
        made.send_part_of_a_head()
        assert made.ends() == [(NO_ERROR, stream.number + 2)]
    large = serve(ANSWERS, ON, "--write-timeout=0.2")
    with client(large, window=100_000, reads=False) as made:
        stream = made.begin("/large")
        assert made.whole(stream).reset == CANCEL
        assert 65_535 <= len(stream.body) <= 100_000
        assert made.get("/one").body == b"hello"


def test_a_scheme_of_tls_without_tls(serve: Serve) -> None:
    """HAProxy writes `https` whatever its clients speak: it is neither refused nor believed."""
    for trusted in ("127.0.0.1", "192.0.2.1"):
        server = serve(ECHO, ON, "--trusted-proxies", trusted)
        pseudo = [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/")]
        with client(server) as made:
            for said in ((), (("x-forwarded-proto", "https"),)):
                stream = made.whole(made.begin_with([*pseudo, *said]))
                is_believed = said and trusted == "127.0.0.1"
                scheme = "https" if is_believed else "http"
                assert text_of(stream)["wsgi.url_scheme"] == scheme


# Streams beside each other


@pytest.mark.each_mode("single")
def test_streams_beside_each_other(mode: str, tmp_path: Path) -> None:
    at_once = min(AT_ONCE[mode], 8) if mode != "forking" else 1
    with Server(GATE, mode, ON) as server, client(server) as made:
        gates = [tmp_path / str(number) for number in range(at_once)]
        held = [made.begin(f"/wait?{gate}") for gate in gates]
        for gate in gates:
            server.wait_log(f"entered {gate}\n")
        # They end in the opposite order.
        for stream, gate in reversed([*zip(held, gates, strict=True)]):
            if at_once > 1 and gate is gates[-2]:
                assert made.get("/run").status == 200
            gate.touch()
            assert made.whole(stream).status == 200
        many = [made.begin("/process") for _ in range(50)]
        assert {made.whole(stream).status for stream in many} == {200}


@pytest.mark.parametrize("mode", ["single", "threading", "gevent"])
def test_a_response_does_not_wait_for_the_next(mode: str, tmp_path: Path) -> None:
    """Requests that come together are answered together, unless one takes long."""
    gate = tmp_path / "gate"
    with Server(GATE, mode, ON) as server, client(server) as made:
        with patch.object(made, "flush"):
            quick, slow = made.begin("/process"), made.begin(f"/wait?{gate}")
        made.flush()
        assert made.whole(quick).status == 200
        assert not slow.is_over
        gate.touch()
        assert made.whole(slow).status == 200


@pytest.mark.each_mode("single")
def test_a_slow_reader_of_one_stream_holds_up_no_other(mode: str) -> None:
    """Nor a thread: there are more slow readers than threads."""
    with Server(ANSWERS, mode, ON) as server, client(server, window=70_000, reads=False) as made:
        slow = [made.begin("/large_generated") for _ in range(10)]
        made.until(lambda: all(len(stream.body) >= 65_535 for stream in slow))
        assert made.get("/one").body == b"hello"
        with server.connect() as connection:
            assert connection.request("GET", "/one").body == b"hello"
        made.reads = True
        for stream in slow:
            made.read(stream)
        assert {len(made.whole(stream).body) for stream in slow} == {5_000_000}


def test_streams_that_wait_for_content_have_no_buffers() -> None:
    """2,000 of them need at most 4 KiB each, and with a part of their content as well."""
    with Server(ECHO, "threading", ON, "--workers", "1") as server:
        (worker,) = map(psutil.Process, children(server.process.pid))
        clients = [client(server) for _ in range(10)]
        for made in clients:
            made.post("/", b"warm")
        before = worker.memory_info().rss
        streams = [(made, made.begin("/", method="POST", ended=False)) for made in clients * 200]
        for made in clients:
            made.ping()
        for made, stream in streams:
            made.send(stream, b"part")
        for made in clients:
            made.ping()
        assert worker.memory_info().rss - before <= 8 << 20
        for made, stream in streams[::100]:
            made.send(stream, ended=True)
            assert made.whole(stream).status == 200
        for made in clients:
            made.close()


def test_one_connection_does_not_take_all_turns(tmp_path: Path) -> None:
    """Requests that have come on it take turns with those of other connections."""
    gate, log = tmp_path / "gate", tmp_path / "access"
    options = ("--threads=1", "--access-log", str(log), "--access-log-format", "%H")
    with Server(GATE, "threading", ON, *options) as server, client(server) as made:
        held = made.begin(f"/wait?{gate}")
        server.wait_log(f"entered {gate}\n")
        many = [made.begin("/process") for _ in range(20)]
        with server.connect() as connection:
            connection.send_request("GET", "/process")
            gate.touch()
            assert connection.response().status == 200
        assert {made.whole(stream).status for stream in [held, *many]} == {200}
        wait_for(lambda: log.read_text().count("\n") == 22, "22 lines")
        assert log.read_text().splitlines().index("HTTP/1.1") < 5


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("mode", ["threading", "gevent"])
def test_another_connection_is_next(mode: str, version: int, tmp_path: Path) -> None:
    """Also if all threads run streams of one connection, and many more of its streams wait."""
    gates = [tmp_path / str(number) for number in range(100)]
    at_once = 8 if mode == "threading" else len(gates)
    with (
        Server(GATE, mode, ON, "--workers=1", "--threads=8") as server,
        client(server) as made,
        client(server) as second,
        server.connect() as other,
    ):
        many = [made.begin(f"/wait?{gate}") for gate in gates]
        for gate in gates[:at_once]:
            server.wait_log(f"entered {gate}\n")
        last = tmp_path / "last"
        if version == 1:
            other.send_request("GET", f"/wait?{last}")
        else:
            second.begin(f"/wait?{last}")
        gates[0].touch()
        server.wait_log(f"entered {last}\n")
        entered = re.findall(r"^entered .*/(\w+)$", server.log(), re.MULTILINE)
        assert entered.index("last") == at_once
        for gate in (*gates, last):
            gate.touch()
        assert {made.whole(stream).status for stream in many} == {200}


@pytest.mark.each_mode
def test_connections_are_read_while_all_threads_run_requests(mode: str, tmp_path: Path) -> None:
    gate, large = tmp_path / "gate", tmp_path / "large"
    large.write_bytes(bytes(range(256)) * 20_000)
    options = (ON, f"--static=/f={tmp_path}", "--workers=1", "--threads=1")
    with (
        Server("tests/apps/busy.py", mode, *options) as server,
        client(server, window=70_000, reads=False) as slow,
        client(server) as made,
    ):
        response = slow.begin("/f/large")
        slow.until(lambda: len(response.body) >= 65_535)
        held = made.begin(f"/hold?{gate}")
        server.wait_log(f"holds {gate}\n")
        for each in (slow, made):
            each.ping()
        slow.reads = True
        slow.read(response)
        assert slow.whole(response).body == large.read_bytes()
        gate.touch()
        assert made.whole(held).status == 200
        left = made.begin("/left")
        server.wait_log("waits\n")
        made.reset(left)
        server.wait_log("left\n")
        assert made.get("/after").status == 200


def test_memory_of_responses_that_are_not_read() -> None:
    """Bounded for all streams of a connection together: most responses wait in temporary files."""
    with (
        Server(ANSWERS, "single", ON) as server,
        client(server, window=1_000, reads=False) as made,
    ):
        (worker,) = process.workers(server.process.pid)
        whole = made.begin("/large")
        made.until(lambda: whole.body)
        before = process.resident(worker)
        streams = [made.begin("/large") for _ in range(40)]
        made.until(lambda: all(stream.body for stream in streams))
        assert process.resident(worker) - before < 24 << 20
        for stream in (whole, streams[-1]):
            made.h2.increment_flow_control_window(10_000_000, stream.number)
            made.flush()
            assert made.whole(stream).body == b"0123456789" * 500_000


LOGGED = ("--access-log-format", "%s %U %H", "--workers=1")


@pytest.mark.parametrize("mode", ["threading", "gevent"])
def test_a_client_that_leaves_a_stream(mode: str, tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "access"
    with Server(GATE, mode, ON, "--access-log", str(log), *LOGGED) as server:
        with client(server) as made:
            held = made.begin(f"/wait?{gate}")
            server.wait_log(f"entered {gate}\n")
            made.reset(held)
            made.ping()
            gate.touch()
            assert made.get("/process").status == 200
        wait_for(lambda: log.read_text().count("\n") == 2, "two lines")
        assert sorted(log.read_text().splitlines()) == [
            "200 /process HTTP/2.0",
            "499 /wait HTTP/2.0",
        ]
        server.wait_log("the client left before the end of the response")


@pytest.mark.parametrize("mode", ["single", "threading"])
def test_a_client_that_leaves_streams_that_wait(mode: str, tmp_path: Path) -> None:
    """They are not run."""
    gate, log = tmp_path / "gate", tmp_path / "access"
    logged = ("--access-log", str(log), *LOGGED)
    with Server(GATE, mode, ON, *logged, "--threads=1") as server, client(server) as made:
        held = made.begin(f"/wait?{gate}")
        server.wait_log(f"entered {gate}\n")
        left = [made.begin(f"/wait?{gate}-never") for _ in range(3)]
        for stream in left:
            made.reset(stream)
        gate.touch()
        assert made.whole(held).status == 200
        wait_for(lambda: log.read_text().count("\n") == 4, "four lines")
        assert log.read_text().count("499 /wait HTTP/2.0\n") == 3
        assert server.log().count("not run, logged with 499: the client has reset the stream") == 3
        assert "-never\n" not in server.log()


def test_a_request_timeout_ends_its_stream_alone() -> None:
    options = (ON, "--request-timeout=0.6")
    with Server("tests/apps/slow.py", "threading", *options) as server, client(server) as made:
        hanging = made.begin("/nap")
        assert made.get("/").status == 200
        assert made.whole(hanging).status == 504
        assert made.get("/").status == 200


# Files


def test_files(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("files")
    large = bytes(range(256)) * 40_000
    (folder / "large.bin").write_bytes(large)
    (folder / "small.txt").write_bytes(b"small" * 1_000)
    server = serve(ECHO, ON, f"--static=/f={folder}", "--compress=on")
    with client(server) as made:
        for _ in range(2):
            assert made.get("/f/large.bin").body == large
            small = made.get("/f/small.txt")
            assert small.body == b"small" * 1_000
            tag = ("if-none-match", small.get("etag") or "")
            assert made.get("/f/small.txt", tag).status == 304
            part = made.get("/f/large.bin", ("range", "bytes=1000-8000999"))
            assert (part.status, part.body) == (206, large[1000:8_001_000])
            coded = made.get("/f/small.txt", ("accept-encoding", "gzip"))
            assert coded.get("content-encoding") == "gzip"
            assert len(coded.body) < 1_000
            head = made.get("/f/large.bin", method="HEAD")
            assert (head.get("content-length"), head.body) == (str(len(large)), b"")
        assert made.post("/f/small.txt", b"body").status == 405
        many = [made.begin("/f/large.bin") for _ in range(5)]
        assert all(made.whole(stream).body == large for stream in many)


# Life


@pytest.mark.each_mode("single")
def test_a_stop(mode: str, tmp_path: Path) -> None:
    """Streams under way are answered, those begun before the second GOAWAY too."""
    gate = tmp_path / "gate"
    options = ("--workers=1", "--drain-timeout=60")
    with (
        Server(GATE, mode, ON, *options) as server,
        client(server) as made,
        client(server) as idle,
    ):
        idle.ping()
        held = made.begin(f"/wait?{gate}")
        server.wait_log(f"entered {gate}\n")
        server.process.terminate()
        if AT_ONCE[mode] > 2:
            wait_for(server.is_refusing, "a server that stops")
        # This client has not answered the PING behind the first GOAWAY.
        late = made.begin("/process")
        gate.touch()
        assert made.whole(held).status == 200
        assert made.whole(late).status == 200
        assert made.ends() == [(NO_ERROR, 2**31 - 1), (NO_ERROR, late.number)]
        assert idle.ends() == [(NO_ERROR, 2**31 - 1), (NO_ERROR, 0)]
        assert server.wait() == 0
        server.ended()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_end_destroys_nothing(scheme: str, tmp_path: Path) -> None:
    """What a client sends when all is answered is no reason for a reset of the connection."""
    certificate().write(tmp_path / "pem")
    bind = ("127.0.0.1:0", "https://127.0.0.1:0")
    options = (ON, "--workers=1", "--tls-certificate", str(tmp_path / "pem"))
    with Server(GATE, "threading", *options, bind=bind) as server:
        made = Client(tls(server, "h2") if scheme == "https" else ("127.0.0.1", server.port))
        with made:
            assert made.get("/process").status == 200
            server.process.terminate()
            assert made.ends() == [(NO_ERROR, 2**31 - 1), (NO_ERROR, 1)]
            # If there is a reset, it follows the first frame, and the second one fails.
            for _ in range(2):
                made.h2.ping(b"12345678")
                made.flush()
        server.ended()


def test_an_end_waits_for_a_slow_reader(tmp_path: Path) -> None:
    """What the kernel has yet to send is not destroyed by what the client sends as it reads."""
    (tmp_path / "file").write_bytes(b"x" * 1_000_000)
    with Server(f"static:{tmp_path}", "threading", ON, "--workers=1") as server:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        sock.connect(("127.0.0.1", server.port))
        with Client(sock) as made:
            stream = made.begin("/file")
            made.until(lambda: stream.body)
            server.process.terminate()
            # The time of a connection that lingers passes; the kernel has the rest.
            time.sleep(3)
            assert len(made.whole(stream).body) == 1_000_000
            assert [code for code, _ in made.ends()] == [NO_ERROR, NO_ERROR]
        server.ended()


@pytest.mark.each_mode
def test_no_stream_is_lost_by_reloads(mode: str) -> None:
    with Server(GATE, mode, ON) as server:
        answered = 0
        for _ in range(3):
            generations = server.log().count("reloaded")
            server.process.send_signal(1)
            while server.log().count("reloaded") == generations:
                with client(server) as made:
                    streams = [made.begin("/process") for _ in range(5)]
                    assert {made.whole(stream).status for stream in streams} == {200}
                    answered += 5
        assert answered


def test_a_binary_upgrade(tmp_path: Path) -> None:
    """What is under way is answered by the old processes; their client is told to connect again."""
    gate, pidfile = tmp_path / "gate", tmp_path / "pid"
    options = (ON, "--pidfile", str(pidfile), "--workers=1", "--drain-timeout=60")
    with Server(GATE, "threading", *options) as server, client(server) as made:
        held = made.begin(f"/wait?{gate}")
        server.wait_log(f"entered {gate}\n")
        os.kill(int(pidfile.read_text()), signal.SIGUSR2)
        made.until(lambda: made.terminated)
        late = made.begin("/process")
        gate.touch()
        assert made.whole(held).status == 200
        assert made.ends() == [(NO_ERROR, 2**31 - 1), (NO_ERROR, held.number)]
        # The client has answered the PING before: a proxy sends this one again.
        assert not late.is_over
        with client(server) as again:
            assert again.get("/process").status == 200
        server.wait_log("has taken over")
        binary_upgrade.wait_for_end(server.process.pid, server)
        binary_upgrade.end(server, int(pidfile.read_text()))


def test_metrics(tmp_path: Path) -> None:
    """Connections and streams that are open, resets by either side, failed connections."""
    gate, admin = tmp_path / "gate", str(tmp_path / "admin")

    def metrics() -> list[int]:
        with Connection(admin) as asking:
            text = asking.request("GET", "/-/metrics").body.decode()
        return [int(n) for n in re.findall(r"^poorhttp_http2_\S+ (\d+)$", text, re.MULTILINE)]

    def await_metrics(*expected: int) -> None:
        wait_for(lambda: metrics() == [*expected], f"metrics {expected}, not {metrics()}")

    options = ("--workers=1", f"--admin=unix:{admin}", "--keepalive-timeout=3600")
    with Server(GATE, "threading", ON, *options) as server, client(server) as made:
        held = made.begin(f"/wait?{gate}")
        made.begin(f"/wait?{gate}")
        assert made.get("/process").status == 200
        await_metrics(1, 2, 0, 0, 0)
        made.reset(held)
        # A window that is opened by nothing (RFC 9113 section 6.9).
        made.socket.sendall(b"\0\0\x04\x08\0\0\0\0\x03" + b"\0\0\0\0")
        await_metrics(1, 2, 1, 1, 0)
        gate.touch()
        await_metrics(1, 0, 1, 1, 0)
        # PUSH_PROMISE, which no client may send.
        made.socket.sendall(b"\0\0\0\x05\0\0\0\0\x01")
        assert made.ends() == [(PROTOCOL_ERROR, 5)]
        made.close()
        await_metrics(0, 0, 1, 1, 1)


def test_idle_connections(serve: Serve) -> None:
    server = serve(GATE, ON, "--keepalive-timeout=0.2", "--header-timeout=0.2")
    with client(server) as made:
        assert made.ends() == [(NO_ERROR, 0)]
    with client(server) as made:
        stream = made.get("/process")
        assert made.ends() == [(NO_ERROR, stream.number)]


def test_an_idle_connection_makes_room_for_another(serve: Serve) -> None:
    server = serve(GATE, ON, "--max-connections=2")
    with client(server) as idle, client(server) as other:
        for made in (idle, other):
            assert made.get("/process").status == 200
            # The stream has ended for the server as well.
            made.ping()
        with client(server) as made:
            assert made.get("/process").status == 200
            assert idle.ends() == [(NO_ERROR, 1)]
        assert other.get("/process").status == 200


# Faults of applications


FAULTY = """\
def application(environ, start_response):
    name = environ["PATH_INFO"][1:]
    if name == "before":
        raise ValueError
    if name == "sendfile":
        start_response("200 OK", [("X-Sendfile", FILE)])
        return []
    if name == "wrapper":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return environ["wsgi.file_wrapper"](open(FILE, "rb"))
    if name == "written":
        write = start_response("200 OK", [("Content-Type", "text/plain")])
        write(b"one ")
        write(b"two")
        return []
    if name == "upgrade":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"has" if "poorhttp.upgrade" in environ else b"has not"]
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "10")])
    return within() if name == "within" else [b"short"]

def within():
    yield b"begun"
    raise ValueError
"""


def test_what_an_application_does(tmp_path: Path) -> None:
    file = tmp_path / "file"
    content = bytes(range(256)) * 10_000
    file.write_bytes(content)
    app = tmp_path / "app.py"
    app.write_text(f"FILE = {str(file)!r}\n{FAULTY}")
    sendfile = f"--x-sendfile={tmp_path}"
    with (
        Server(str(app), "threading", ON, sendfile, tracebacks=True) as server,
        client(server) as made,
    ):
        assert made.get("/before").status == 500
        for name, begun in (("within", b"begun"), ("short", b"short")):
            stream = made.get(f"/{name}")
            assert (stream.status, stream.body, stream.reset) == (200, begun, INTERNAL_ERROR)
        assert made.get("/sendfile").body == content
        assert made.get("/wrapper").body == content
        assert made.get("/written").body == b"one two"
        # No other protocol can be spoken on a stream.
        assert made.get("/upgrade").body == b"has not"


# TLS, and clients of others


@pytest.mark.each_mode
def test_tls(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("tls") / "pem"
    certificate().write(file)
    server = serve(STREAMED, "--tls-certificate", str(file), bind=("https://127.0.0.1:0",))
    body = bytes(range(256)) * 8_000
    with Client(tls(server, "h2")) as made:
        streams = [made.post(f"/{way}", body) for way in ("hash", "whole")]
        assert all(stream.body.startswith(b"%d " % len(body)) for stream in streams)
        assert made.get("/kind").status == 200


def test_the_development_server(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "def application(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    return [environ['SERVER_PROTOCOL'].encode()]\n"
    )
    words = command("dev", "app:application", "--bind", "127.0.0.1:0", "--https")
    with Program(*words, cwd=tmp_path, env={"HOME": str(tmp_path)}, merged=True) as dev:
        found = dev.wait_line(re.compile(r"https://[\w.]+:(\d+)"))
        curl = ("curl", "--silent", "--insecure", "--http2", f"https://127.0.0.1:{found[1]}/")
        assert run(*curl).stdout == "HTTP/2"


def test_clients_of_others(serve: Serve, tmp_path: Path) -> None:
    server = serve(ANSWERS, ON)
    url = f"http://127.0.0.1:{server.port}"
    curl = ("curl", "--silent", "--http2-prior-knowledge")
    assert run(*curl, f"{url}/several").stdout == "one two three"
    urls = [f"{url}/{name}" for name in ("one", "large", "generated", "many_pieces")]
    found = run("nghttp", "--stat", "--null-out", *urls).stdout
    assert found.count(" 200 ") == len(urls)
    echo = f"http://127.0.0.1:{serve(ECHO, ON).port}/"
    large = tmp_path / "large"
    large.write_bytes(b"0123456789" * 100_000)
    told = json.loads(run(*curl, "--data-binary", f"@{large}", echo).stdout)
    assert told["body"] == large.read_text()
