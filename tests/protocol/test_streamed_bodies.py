"""Request bodies that the application receives while it runs (`stream_request_body`)."""

from __future__ import annotations

import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.apps.long import BLOCK, BLOCKS
from tests.apps.streamed import WAYS, summary
from tests.conftest import Serve
from tests.testkit.cases.gateway import BEGIN, FIRST_LINE, PARAMS, STDIN, pack, record, recorded
from tests.testkit.client import Closed, Connection, receive_until
from tests.testkit.process import children
from tests.testkit.server import Server, run, wait_for

ALONE = True

APP = "tests/apps/streamed.py"
ON = ("--stream-request-body", "on", "--log-level", "info")
#: The same behind a web server.
GATEWAYS = tuple(f"--bind={protocol}://127.0.0.1:0" for protocol in FIRST_LINE)
BEHIND = (*ON, "--trusted-proxies=127.0.0.1", *GATEWAYS)
#: A larger one has not come as a whole with its head.
MUCH = 300_000


def body(length: int) -> bytes:
    """Something of this length in which no two places look the same, in lines."""
    return b"".join(b"%07x\n" % number for number in range(length // 8 + 1))[:length]


def chunked(content: bytes, size: int) -> bytes:
    """A body in chunks of so many bytes, with trailers."""
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    chunks = [b"%x;a=b\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    return b"".join(chunks) + b"0\r\nX-Trailer: dropped\r\n\r\n"


def half_sent(connection: Connection, path: str, content: bytes, *headers: str) -> bytes:
    """Send a head and half of its body; returns the other half."""
    half = len(content) // 2
    connection.send_request("POST", path, f"Content-Length: {len(content)}", *headers)
    connection.send(content[:half])
    return content[half:]


@pytest.mark.each_mode
@pytest.mark.parametrize("way", WAYS)
def test_bodies_arrive_whole(serve: Serve, way: str) -> None:
    with serve(APP, *ON).connect() as connection:
        for length in (1, 9_000, MUCH):
            content = body(length)
            for size in (7, 5_000, 70_000)[length == MUCH :]:
                connection.send_request("POST", f"/{way}", "Transfer-Encoding: chunked")
                connection.send(chunked(content, size))
                assert connection.response().body == summary(content), (length, size)
            for _ in range(2):
                answer = connection.request("POST", f"/{way}", body=content)
                assert (answer.status, answer.body) == (200, summary(content)), length


@pytest.mark.each_mode
def test_a_body_may_be_cut_anywhere(serve: Serve) -> None:
    content = body(50)
    framings = {"Transfer-Encoding: chunked": chunked(content, 23), "Content-Length: 50": content}
    with serve(APP, *ON).connect() as connection:
        for framing, sent in framings.items():
            for cut in range(len(sent)):
                connection.send_request("POST", "/pieces", framing)
                connection.send(sent[:cut])
                connection.send(sent[cut:])
                assert connection.response().body == summary(content), (framing, cut)
            connection.send_request("POST", "/available", framing)
            connection.send_slowly(sent)
            assert connection.response().body == summary(content)


@pytest.mark.each_mode
def test_the_application_reads_while_it_answers(serve: Serve) -> None:
    """Each piece is sent only when the one before has come back."""
    with serve(APP, *ON).connect() as connection:
        connection.send_request("POST", "/echo", "Transfer-Encoding: chunked")
        for number in range(20):
            piece = b"piece %d" % number
            connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            receive_until(connection, piece)
        connection.send(b"0\r\n\r\n")
        assert connection.rest().endswith(b"0\r\n\r\n")


@pytest.mark.each_mode
def test_an_answer_comes_before_the_body(serve: Serve) -> None:
    chunked = ("Transfer-Encoding: chunked", "Expect: 100-continue")
    for fields in (("Content-Length: 1000000000",), chunked):
        with serve(APP, *ON).connect() as connection:
            connection.send_request("POST", "/refuse", *fields)
            answer = connection.response()
            assert (answer.status, answer.interim, answer.get("Connection")) == (413, [], "close")
            # What the client sends meanwhile does not destroy the answer.
            with suppress(ConnectionError):
                connection.send(bytes(MUCH))
            assert connection.at_end()
            assert not connection.was_reset


@pytest.mark.each_mode
def test_continue_is_sent_when_the_application_reads(serve: Serve) -> None:
    content = body(MUCH)
    with serve(APP, *ON).connect() as connection:
        for path in ("/whole", "/started"):
            connection.send_request("POST", path, f"Content-Length: {MUCH}", "Expect: 100-continue")
            assert connection.interim() == 100
            connection.send(content)
            answer = connection.response()
            assert (answer.body, answer.interim) == (summary(content), [])
            assert answer.get("X-Early") == ("yes" if path == "/started" else None)


@pytest.mark.each_mode
@pytest.mark.parametrize("path", ["/refuse", "/first"])
def test_a_connection_is_kept_if_the_rest_has_come(serve: Serve, path: str) -> None:
    """But not if it is much, or has not come, whatever has begun."""
    content = body(20_000)
    with serve(APP, *ON).connect() as connection:
        for _ in range(2):
            assert connection.request("POST", path, body=content).get("Connection") is None
        connection.send_request("POST", path, f"Content-Length: {1 << 22}")
        with suppress(ConnectionError):
            connection.send(bytes(1 << 22))
        assert connection.response().get("Connection") == "close"
    with serve(APP, *ON).connect() as connection:
        connection.send_request("POST", path, f"Content-Length: {MUCH}")
        connection.send(b"a")
        assert connection.response().get("Connection") == "close"
        with pytest.raises(Closed):
            connection.response()


def test_a_connection_is_kept_by_who_does_not_look_for_the_end(serve: Serve) -> None:
    """But reads what was announced, and answers in pieces, as Django does."""
    content = body(MUCH)
    with serve(APP, *ON).connect() as connection:
        for _ in range(3):
            answer = connection.request("POST", "/announced", body=content)
            assert (answer.body, answer.get("Connection")) == (summary(content), None)


def test_pipelined_requests_are_answered_in_their_order(serve: Serve) -> None:
    content = body(12_000)
    request = b"POST /whole HTTP/1.1\r\nHost: a\r\nContent-Length: 12000\r\n\r\n" + content
    other = b"GET /kind HTTP/1.1\r\nHost: a\r\n\r\n"
    with serve(APP, *ON).connect() as connection:
        connection.send((other + request) * 5)
        for _ in range(5):
            assert connection.response().body == b"EmptyInput None 0"
            assert connection.response().body == summary(content)
        # The answer to the first must not wait for the body of the second.
        connection.send(other + request[:-1])
        assert connection.response().body == b"EmptyInput None 0"
        connection.send(request[-1:])
        assert connection.response().body == summary(content)


def test_only_what_is_asked_for_is_streamed(serve: Serve) -> None:
    server = serve(APP, "--stream-request-body", "/up/load", "--stream-request-body", "/b")
    content = body(MUCH)
    kinds = dict.fromkeys(("/up/load/kind", "/up/%6coad/kind", "/b/kind"), b"StreamedInput")
    kinds |= dict.fromkeys(("/up/loads/kind", "/kind"), b"BytesIO")
    with server.connect() as connection:
        for path, kind in kinds.items():
            expected = b"%b %d %d" % (kind, MUCH, MUCH)
            assert connection.request("POST", path, body=content).body == expected
        # A body that has come with its head is like all others.
        assert connection.request("POST", "/b/kind", body=b"short").body == b"BytesIO 5 5"
        head = b"POST /b/kind HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.send(head + chunked(b"short", 2))
        assert connection.response().body == b"BytesIO 5 5"


def test_programs_get_their_body_whole(tmp_path: Path) -> None:
    (tmp_path / "programs").mkdir()
    options = ("--mount", f"/p=cgi:{tmp_path / 'programs'}", "--stream-request-body", "/p/x")
    found = run(sys.executable, "-m", "poorhttp", "check", APP, *options)
    assert found.returncode == 3
    assert "--stream-request-body" in found.stderr
    assert "CGI programs get it whole" in found.stderr


@pytest.mark.each_mode
@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"fff\r\n" + bytes(0xFFF) + b"\r\n2\r\n", 413), (b"3\r\nabcX", 400), (b"xyz\r\n", 400)],
)
def test_a_body_that_is_refused(serve: Serve, sent: bytes, status: int) -> None:
    """Where the application reads it. Nothing that comes behind it is answered."""
    server = serve(APP, *ON, "--max-body", "4096")
    with server.connect() as connection:
        connection.send_request("POST", f"/whole?{len(sent)}", "Transfer-Encoding: chunked")
        server.wait_log(f"entered whole {len(sent)}")
        connection.send(sent)
        answer = connection.response()
        assert (answer.status, answer.get("Connection")) == (status, "close")
        assert connection.at_end()
    server.wait_log(f"its body is refused with {status} (")
    what = f"POST /whole?{len(sent)}: the application has no answer, its client got {status}"
    server.wait_log(what)


def test_an_announced_body_over_the_limit_is_refused_before(serve: Serve) -> None:
    server = serve(APP, *ON, "--max-body", "4096")
    assert server.request("POST", "/limit", "Content-Length: 4097").status == 413
    assert "entered limit" not in server.log()


@pytest.mark.each_mode
def test_a_client_that_sends_nothing_is_given_up(serve: Serve) -> None:
    server = serve(APP, *ON, "--body-timeout", "0.3")
    with server.connect() as connection:
        connection.send_request("POST", "/whole", "Content-Length: 10")
        answer = connection.response()
        assert (answer.status, answer.get("Connection")) == (408, "close")
    server.wait_log("its body is refused with 408 (the body did not arrive in time)")


@pytest.mark.each_mode
def test_a_client_that_leaves(serve: Serve) -> None:
    server = serve(APP, *ON)
    for name, leave in (
        *(("whole", Connection.close), ("whole", Connection.reset)),
        ("caught", Connection.close),
    ):
        connection = server.connect()
        half_sent(connection, f"/{name}?{leave.__name__}", body(MUCH))
        server.wait_log(f"entered {name} {leave.__name__}")
        leave(connection)
        left = "the client left before the end of the response"
        server.wait_log(f"POST /{name}?{leave.__name__}: {left}")
    server.wait_log("caught ConnectionResetError: the client has left in the middle")


@pytest.mark.each_mode
def test_request_timeout_interrupts_a_read(mode: str) -> None:
    with Server(APP, mode, *ON, "--request-timeout", "0.5") as server:
        with server.connect() as connection:
            half_sent(connection, "/whole", body(MUCH))
            assert connection.response().status == 504
        server.wait_log("POST /whole: the application was interrupted, its client got 504")
        assert server.request("POST", "/whole", body=b"a").body == summary(b"a")


@pytest.mark.each_mode
def test_a_reload_and_a_stop_wait_for_the_body(mode: str) -> None:
    content = body(MUCH)
    with Server(APP, mode, *ON) as server:
        for number in (signal.SIGHUP, signal.SIGTERM):
            with server.connect() as connection:
                rest = half_sent(connection, f"/whole?{number.name}", content)
                server.wait_log(f"entered whole {number.name}")
                server.process.send_signal(number)
                if number == signal.SIGHUP:
                    server.wait_log("reloaded: the new version serves")
                    assert server.request("POST", "/whole", body=b"a").body == summary(b"a")
                else:
                    wait_for(server.is_refusing, "the stop to begin")
                connection.send(rest)
                assert connection.response().body == summary(content)
        assert server.wait() == 0
        server.ended()


def test_notices_wake_greenlets_in_any_order() -> None:
    """Greenlets wait for bodies, and then for room; each goes on when its own client does."""
    content = body(MUCH)
    options = (*ON, "--spool-limit", "0", "--mount", "/long=tests/apps/long.py")
    with Server(APP, "gevent", *options) as server:
        waiting = [server.connect() for _ in range(20)]
        rests = [half_sent(connection, "/whole", content) for connection in waiting]
        for connection, rest in reversed(list(zip(waiting, rests, strict=True))):
            connection.send(rest)
            assert connection.response().body == summary(content)
        waiting = [server.connect() for _ in range(5)]
        for connection in waiting:
            connection.send(b"GET /long/pieces HTTP/1.1\r\nHost: a\r\n\r\n")
        assert server.request("HEAD", "/long/pieces").status == 200
        assert "made /pieces" not in server.log()
        for connection in reversed(waiting):
            assert connection.response().body == BLOCK * BLOCKS


@pytest.mark.each_mode
def test_a_thread_that_reads_too_late(serve: Serve, tmp_path: Path) -> None:
    server = serve(APP, *ON)
    gate = tmp_path / "gate"
    with server.connect() as connection:
        half_sent(connection, f"/later?{gate}", body(MUCH))
        assert connection.response().body == b"later"
    gate.touch()
    server.wait_log("too late: ")


@pytest.mark.parametrize("mode", ["single", "forking", "threading"], indirect=True)
def test_two_threads_and_a_fork_of_the_application(serve: Serve, mode: str) -> None:
    """Threads share what comes; a fork does not read."""
    content = body(MUCH)
    server = serve(APP, *ON)
    with server.connect() as connection:
        connection.send_request("POST", "/beside", "Content-Length: 20")
        server.wait_log("entered beside")
        connection.send(b"a" * 10)
        connection.send(b"b" * 10)
        assert connection.response().body == b"aaaaaaaaaa bbbbbbbbbb"
        connection.send(half_sent(connection, "/forked", content))
        assert connection.response().body == b"3 " + summary(content)


@pytest.mark.parametrize("protocol", FIRST_LINE)
def test_gateway_protocols(serve: Serve, protocol: str) -> None:
    content = body(MUCH)
    variables = [(b"REQUEST_METHOD", b"POST"), (b"CONTENT_LENGTH", b"%d" % MUCH)]
    variables += [(b"REQUEST_URI", b"/whole"), (b"PATH_INFO", b"/whole")]
    variables += [(b"SERVER_PROTOCOL", b"HTTP/1.1")]
    server = serve(APP, *BEHIND)
    address = ("127.0.0.1", server.port_of(protocol))
    packet = pack(protocol, variables, content)
    for cut in (len(packet) - 1, len(packet) // 2, len(packet) - MUCH // 2):
        with Connection(address) as connection:
            before = server.log().count("entered whole")
            connection.send(packet[:cut])
            server.wait_log("entered whole", before + 1)
            connection.send(packet[cut:])
            assert summary(content) in connection.rest()
    refused = [(name, value.replace(b"whole", b"refuse")) for name, value in variables]
    with Connection(address) as connection:
        connection.send(pack(protocol, refused, content)[: MUCH // 2])
        assert b"413 Content Too Large" in connection.rest()


def test_fastcgi_requests_without_a_body(serve: Serve) -> None:
    """Their end comes in a record of its own."""
    variables = [(b"REQUEST_METHOD", b"GET"), (b"PATH_INFO", b"/whole"), (b"CONTENT_LENGTH", b"")]
    head = record(BEGIN, struct.pack("!HB5x", 1, 1))
    head += record(PARAMS, b"".join(map(recorded, variables))) + record(PARAMS, b"")
    with Connection(("127.0.0.1", serve(APP, *BEHIND).port_of("fastcgi"))) as connection:
        for _ in range(3):
            connection.send(head)
            connection.send(record(STDIN, b""))
            receive_until(connection, b"0 e3b0c442")


def test_an_upload_needs_no_memory(mode: str) -> None:
    with Server(APP, mode, *ON, "--workers", "1") as server, server.connect() as connection:
        (worker,) = children(server.process.pid)
        assert connection.request("POST", "/hash", body=body(MUCH)).status == 200
        before = psutil.Process(worker).memory_info().rss
        size, most = 96 << 20, 0
        connection.send_request("POST", "/hash", f"Content-Length: {size}")
        for _ in range(size >> 20):
            connection.send(bytes(1 << 20))
            most = max(most, psutil.Process(worker).memory_info().rss)
        assert connection.response().body.startswith(b"%d " % size)
        assert most - before <= 8 << 20
