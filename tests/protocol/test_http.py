"""HTTP/1.0 and 1.1 over real connections, in every mode (RFC 9110, RFC 9112)."""

from __future__ import annotations

import email.utils
import re
import socket
import struct
import time
from pathlib import Path

import pytest

from tests.apps.hinting import LINK, OTHER, REFUSED
from tests.apps.pieces import MANY
from tests.conftest import Serve
from tests.support.check_each import KeptConnection, by_file, check_each, log_since
from tests.support.each_value import DIFFERENT, each_value
from tests.testkit.cases.exchanges import WAYS, Case, read_all
from tests.testkit.cases.gateway import FIRST_LINE, pack
from tests.testkit.client import Connection, Response, chunked, receive
from tests.testkit.server import AT_ONCE, Server, wait_for

ALONE = True

ECHO = "tests/apps/echo.py"
#: Receives bodies while it runs, if it may.
STREAMED = ("tests/apps/streamed.py:echo", "--stream-request-body", "on")
ANSWERS = "tests/apps/answers.py"

PERFORMER = "tests/apps/performer.py"

CASES = by_file(case for case in read_all() if not case.answer)
ANSWERS_BY_FILE = by_file(case for case in read_all() if case.answer)
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"


def smuggled(case: Case) -> bytes:
    """A request that must never run where the server closes; its target names the case."""
    return SMUGGLED.replace(b"/smuggled", f"/smuggled/{case.name}".encode())


@pytest.fixture
def echo(serve: Serve) -> Server:
    return serve(ECHO)


@pytest.fixture
def patient(serve: Serve) -> Server:
    """One that does not take a half-closed connection for a client that has left (after a wait)."""
    return serve(ECHO, "--abort-on-close=off", "--server-header", "")


@pytest.fixture
def answers(serve: Serve) -> Server:
    return serve(ANSWERS)


def answers_to(case: Case, connection: Connection) -> list[Response]:
    """Read as many answers as a case expects, and check their statuses."""
    methods = ["HEAD" if at in case.heads else "GET" for at in range(len(case.statuses))]
    responses = [connection.response(method) for method in methods]
    assert tuple(response.status for response in responses) == case.statuses
    return responses


def check_case(case: Case, connection: Connection) -> None:
    # What stands behind a message that is refused must never be taken for a request.
    connection.send(case.send + smuggled(case) if case.close else case.send)
    responses = answers_to(case, connection)
    may_continue = b"100-continue" in case.send.lower() and b" HTTP/1.1" in case.send
    for response in responses:
        assert response.interim in ([[], [100]] if may_continue else [[]])
    if case.body is not None:
        assert responses[-1].json()["body"].encode("latin-1") == case.body
    for key, value in case.environ.items():
        assert responses[-1].json()["environ"].get(key) == value, key
    if case.refused:
        # An answer of the server's own is complete: a reason, Date, length, close.
        assert responses[-1].reason
        assert responses[-1].get("Date")
        assert responses[-1].framing == ("none" if len(responses) - 1 in case.heads else "length")
    if case.close:
        assert connection.at_end(), "the connection stays open"
        assert responses[-1].get("Connection") == "close"
    else:
        after = connection.request("GET", "/after")
        assert after.json()["environ"]["PATH_INFO"] == "/after"


@pytest.mark.parametrize("app", [(ECHO,), STREAMED], ids=["whole", "streamed"])
@pytest.mark.parametrize("file", CASES)
def test_cases(serve: Serve, file: str, app: tuple[str, ...]) -> None:
    """The core's tests also send them octet by octet (core/http/tests/cases.rs)."""
    server = serve(*app)

    def check(case: Case) -> None:
        before = server.log_size()
        connections = KeptConnection(server.connect) if case.close else kept
        with connections.use(keep=connections is kept) as connection:
            check_case(case, connection)
        log = log_since(server, before, other)
        assert "/smuggled" not in log
        assert "/never" not in log

    with KeptConnection(server.connect) as kept, KeptConnection(server.connect) as other:
        check_each(CASES[file], check)


@pytest.mark.parametrize(
    "message",
    [
        b"POST /cut HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",
        b"POST /cut HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"4;a=b\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n",
    ],
    ids=["length", "chunked"],
)
def test_a_client_that_stops_in_the_middle_of_a_request(patient: Server, message: bytes) -> None:
    """Half a request is none: it is not run, and what came before it is answered."""
    before = patient.log_size()
    for end in range(1, len(message)):
        with patient.connect() as connection:
            connection.send(b"GET /before HTTP/1.1\r\nHost: a\r\n\r\n" + message[:end])
            connection.socket.shutdown(socket.SHUT_WR)
            assert connection.response().json()["environ"]["PATH_INFO"] == "/before"
            rest = connection.rest()
            assert not rest or rest.startswith(b"HTTP/1.1 400 "), (end, rest)
    assert "/cut" not in "".join(re.findall(r"ran (\S+)", patient.log(before)))


def check_answer(case: Case, connection: Connection) -> None:
    """With a request behind it, whose answer is read right or which never runs."""
    connection.send(case.send + smuggled(case))
    if case.end == "cut":
        head, _, body = connection.rest().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % case.statuses[-1])
        length = re.search(rb"(?i)\ncontent-length: (\d+)", head)
        assert length, head
        assert len(body) < int(length[1])
    else:
        response = answers_to(case, connection)[-1]
        body = response.body
        assert (response.get("Connection") == "close") == case.close
    if case.body is not None:
        assert body == case.body
    if case.close:
        assert connection.at_end(), "the connection stays open"
    else:
        assert connection.response().body == f"/smuggled/{case.name}".encode()


@pytest.mark.parametrize(("mode", "way"), each_value(DIFFERENT, WAYS), indirect=["mode"])
@pytest.mark.parametrize("file", ANSWERS_BY_FILE)
def test_cases_of_answers(serve: Serve, file: str, way: str) -> None:
    server = serve(f"{PERFORMER}:by_{way}", tracebacks=True)
    cases = [case for case in ANSWERS_BY_FILE[file] if case.answer and way in case.answer.ways]

    def check(case: Case) -> None:
        before = server.log_size()
        connections = KeptConnection(server.connect) if case.close else kept
        with connections.use(keep=connections is kept) as connection:
            check_answer(case, connection)
        ran = re.findall(r"ran (/smuggled\S*)", log_since(server, before, other))
        assert ran == ([] if case.close else [f"/smuggled/{case.name}"])

    with KeptConnection(server.connect) as kept, KeptConnection(server.connect) as other:
        check_each(cases, check)


@pytest.mark.each_mode
def test_pipelined_behind_a_large_answer(answers: Server) -> None:
    with answers.connect() as connection:
        for path in ("/large", "/one", "/large_generated", "/several"):
            connection.send_request("GET", path)
        assert len(connection.response().body) == 5_000_000
        assert connection.response().body == b"hello"
        assert len(connection.response().body) == 5_000_000
        assert connection.response().body == b"one two three"


# Bodies of requests


def test_expect_continue(echo: Server) -> None:
    framings = {"Content-Length: 5": b"hello", "Transfer-Encoding: chunked": chunked(b"hello")}
    with echo.connect() as connection:
        for framing, body in framings.items():
            connection.send_request("POST", "/", "Expect: 100-continue", framing)
            assert connection.interim() == 100
            connection.send(body)
            response = connection.response()
            assert (response.interim, response.json()["body"]) == ([], "hello")
        # Nobody is told to go on with a body that is too large.
        connection.send_request("POST", "/", "Expect: 100-continue", "Content-Length: 5000000000")
        response = connection.response()
        assert (response.status, response.interim) == (413, [])


def test_max_body(serve: Serve) -> None:
    server = serve(ECHO, "--max-body", "10")
    assert server.request("POST", "/", body=b"0123456789").status == 200
    assert server.request("POST", "/", body=b"0123456789a").status == 413
    with server.connect() as connection:
        connection.send_request("POST", "/", "Transfer-Encoding: chunked")
        connection.send(chunked(b"012345", b"6789a") + SMUGGLED)
        assert connection.response().status == 413
        assert connection.at_end()
    # The refusal arrives although the client goes on: closing with unread octets resets the
    # connection, and the answer may be lost with it.
    with server.connect() as connection:
        connection.send_request("POST", "/", "Content-Length: 1000000")
        connection.send_slowly(b"x" * 1_000)
        assert connection.response().status == 413
    assert "/smuggled" not in server.log()


def test_limits_are_options(serve: Serve) -> None:
    """For each there is a request that is beyond it alone."""
    limits = ("--max-request-line=100", "--max-headers=3", "--max-header-size=100")
    server = serve(ECHO, "--log-level=info", *limits, "--max-request-header-size=150")
    for limit, target, fields, status in (
        ("100 bytes, max_request_line", "/" + 87 * "a", [], 414),
        ("3, max_headers", "/", ["A: 1", "B: 1", "C: 1"], 431),
        ("100 bytes, max_header_size", "/", [f"A: {100 * 'a'}"], 431),
        ("150 bytes, max_request_header_size", "/", [f"A: {92 * 'a'}", f"B: {92 * 'a'}"], 431),
    ):
        lines = [f"GET {target} HTTP/1.1", "Host: a", *fields, "", ""]
        with server.connect() as connection:
            connection.send("\r\n".join(lines).encode() + SMUGGLED)
            assert connection.response().status == status
            assert connection.at_end()
        pattern = rf"refused with {status} \(.* {limit}\)"
        wait_for(lambda: re.search(pattern, server.log()), pattern)  # noqa: B023
        assert server.get("/short").status == 200
    assert "/smuggled" not in server.log()


@pytest.mark.parametrize("options", [(), ("--max-request-header-size", "1MiB")])
def test_long_heads(serve: Serve, options: tuple[str, ...]) -> None:
    """Refused if the option does not allow them; each is another one, and the same again."""
    server = serve(ECHO, "--max-headers", "256", *options)
    fields = [f"X-Field-{number}: {str(number) * 1_000}"[:4_100] for number in range(60, 160)]
    with server.connect() as connection:
        for _ in range(3 if options else 0):
            environ = connection.request("GET", "/long", *fields).json()["environ"]
            for number in (60, 159):
                assert environ[f"HTTP_X_FIELD_{number}"] == str(number) * 1_000
        response = connection.request("GET", "/long", *(fields if options else fields * 2))
        assert response.status == (200 if options else 431)


# Answers


@pytest.mark.parametrize(
    ("path", "framing", "body"),
    [
        ("/one", "length", b"hello"),
        ("/several", "length", b"one two three"),
        ("/empty", "length", b""),
        ("/large", "length", b"0123456789" * 500_000),
        ("/generated", "chunked", b"one two three"),
        ("/nothing_generated", "", b""),
        ("/generated_length", "length", b"one two"),
    ],
)
def test_framing(answers: Server, path: str, framing: str, body: bytes) -> None:
    """What is known at once has its length, the rest is in chunks.

    HEAD has the header section of GET (RFC 9110 section 9.3.2) and nothing behind it. What only
    follows from the content may be missing, and an empty list may mean that the application knows
    of HEAD and has left the content away.
    """
    with answers.connect() as connection:
        head = connection.request("HEAD", path)
        get = connection.request("GET", path)
        assert (get.framing if framing else "", get.body) == (framing, body)
        length = get.get("Content-Length")
        if framing == "length" and body:
            assert length == str(len(body))
        assert head.get("Content-Length") in ((length,) if body else (length, None))
        assert (head.status, head.get("Content-Type")) == (200, get.get("Content-Type"))
        assert {name for name, _ in head.headers} <= {name for name, _ in get.headers}


def test_date_and_server(answers: Server, patient: Server) -> None:
    before = int(time.time())
    response = answers.get("/one")
    date = response.get("Date") or ""
    assert date.endswith(" GMT")
    stamp = email.utils.parsedate_to_datetime(date).timestamp()
    # The date is cached, so it may be some seconds old.
    assert before - 5 <= stamp <= time.time()
    assert email.utils.formatdate(stamp, usegmt=True) == date
    assert response.get("Server") == "poorhttp"
    # Those of the application stand, and the option is `--server-header ""` here.
    response = answers.get("/dated")
    assert response.get("Date") == "Thu, 01 Jan 1970 00:00:00 GMT"
    assert response.get("Server") == "mine"
    assert patient.get("/").get("Server") is None


def test_headers_of_the_application(answers: Server) -> None:
    assert answers.get("/cookies").get_all("Set-Cookie") == ["a=1", "b=2"]
    response = answers.get("/latin")
    assert (response.reason, response.get("X-Word")) == ("Tr\xe8s bien", "caf\xe9")
    response = answers.get("/odd_status")
    assert (response.status, response.reason, response.body) == (299, "", b"odd")


@pytest.mark.each_mode
def test_concurrency_is_told_honestly(echo: Server, serve: Serve, mode: str) -> None:
    """Also the greenlets of a process: the application may be entered again while it waits."""
    several = echo if mode == "forking" else serve(ECHO, "--workers", "2")
    for server in (echo, several):
        environ = server.get("/").json()["environ"]
        assert environ["wsgi.multithread"] == (mode != "forking" and AT_ONCE[mode] > 1)
        assert environ["wsgi.multiprocess"] == (server is several)


# Responses in pieces: those made quickly leave together, and none waits for the next one


@pytest.fixture
def pieces(serve: Serve) -> Server:
    return serve("tests/apps/pieces.py")


def segments(connection: Connection) -> int:
    """Segments with data that have come on a connection (`tcpi_data_segs_in`)."""
    info = connection.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 160)
    (found,) = struct.unpack_from("I", info, 152)
    return int(found)


@pytest.mark.each_mode
@pytest.mark.parametrize("path", ["/many", "/declared"])
def test_pieces_made_quickly_leave_together(pieces: Server, path: str) -> None:
    content = b"".join(b"%04d" % number for number in range(MANY))
    with pieces.connect() as connection:
        for count in (1, 2):
            assert connection.request("GET", path).body == content
            # One for each piece if each were sent at once; one each millisecond now.
            assert segments(connection) < count * MANY / 4


@pytest.mark.each_mode
def test_no_piece_waits_for_the_next(pieces: Server, tmp_path: Path) -> None:
    """The application makes the fourth only when the client has the three before."""
    for number in range(3):
        gate = tmp_path / str(number)
        with pieces.connect() as connection:
            connection.send_request("GET", f"/gate?{gate}")
            while b"three," not in connection.socket.recv(65_536, socket.MSG_PEEK):
                pass
            gate.touch()
            assert connection.response().body == b"one,two,three,four"


# 103 Early Hints (RFC 8297) that an application sends before its response

HINTING = "tests/apps/hinting.py"


def interim(fields: list[tuple[str, str]]) -> bytes:
    """A response 103 as it is sent."""
    lines = [f"{name}: {value}\r\n" for name, value in fields]
    return f"HTTP/1.1 103 Early Hints\r\n{''.join(lines)}\r\n".encode()


@pytest.mark.each_mode
def test_hints_come_at_once(serve: Serve, tmp_path: Path) -> None:
    """The application goes on only when the client has them."""
    expected = interim([LINK]) + interim([OTHER, ("X-Other", "1")])
    with serve(HINTING).connect() as connection:
        for number in range(3):
            gate = tmp_path / str(number)
            connection.send_request("GET", f"/gate?{gate}")
            assert receive(connection, len(expected)) == expected
            gate.touch()
            answer = connection.response()
            assert (answer.status, answer.body, answer.get("Link")) == (200, b"done", None)


@pytest.mark.each_mode
def test_hints_between_the_start_of_a_response_and_its_body(serve: Serve) -> None:
    """Those behind the head are ignored."""
    with serve(HINTING).connect() as connection:
        for _ in range(2):
            answer = connection.request("GET", "/started")
            assert (answer.interim, answer.get("X-Final"), answer.body) == ([103], "yes", b"done")
            answer = connection.request("GET", "/late")
            assert (answer.interim, answer.body) == ([], b"done")


def test_other_requests_get_none(serve: Serve) -> None:
    """HEAD gets them, and HTTP/1.0 does not."""
    server = serve(HINTING)
    with server.connect() as connection:
        assert connection.request("HEAD", "/one").interim == [103]
    with server.connect() as connection:
        assert connection.request("GET", "/one", version="HTTP/1.0").interim == []


def test_gateway_protocols_get_none(serve: Serve) -> None:
    variables = [(b"REQUEST_METHOD", b"GET"), (b"PATH_INFO", b"/one"), (b"CONTENT_LENGTH", b"0")]
    variables += [(b"SERVER_PROTOCOL", b"HTTP/1.1"), (b"REQUEST_URI", b"/one")]
    binds = [f"--bind={protocol}://127.0.0.1:0" for protocol in FIRST_LINE]
    server = serve(HINTING, "--trusted-proxies", "127.0.0.1", *binds)
    for protocol in FIRST_LINE:
        with Connection(("127.0.0.1", server.port_of(protocol))) as connection:
            connection.send(pack(protocol, variables))
            answer = connection.rest()
        assert b"done" in answer
        assert b"103" not in answer


def test_what_is_refused(serve: Serve) -> None:
    """Nothing of it is sent, nor of what stands before."""
    server = serve(HINTING)
    paths = ("/refused", "/types", "/interim?100%20Continue", "/interim?101%20Upgrade")
    with server.connect() as connection:
        for path in (*paths, "/interim?103%20Early%20Hints"):
            answer = connection.request("GET", path)
            assert (answer.status, answer.interim, answer.body) == (200, [], b"done")
    for word in REFUSED:
        server.wait_log(f"refused {word}: ")
    server.wait_log("wrong: the value of header Link must be a str, not bytes")
    server.wait_log("wrong: a header must be a tuple of name and value, not list")
