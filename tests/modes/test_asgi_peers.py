"""What uvicorn 0.54, hypercorn 0.18 and daphne 4.2 test of ASGI: a script each, and the verdict."""

from __future__ import annotations

import signal
from ast import literal_eval
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from loadtests.studies.websocket.cases import NAMES, Frame
from tests.modes.test_asgi import LOOP
from tests.modes.test_asgi_websocket import HANDSHAKE
from tests.support import http2_client
from tests.support.forked_command import run_command
from tests.support.http2_client import Client
from tests.testkit.client import BadResponse, Closed, Connection
from tests.testkit.server import Server, wait_for

APP = "tests/apps/asgi_script.py:app"

Message = dict[str, Any]


class Case(NamedTuple):
    """Steps of an application, and what comes of them.

    Attributes:
        verdict: status, fields `x-...`, and body, unless the status is one of faults; `cut`: the
            response does not end; `closed`: the connection is not kept behind it.
        notes: of the application, mostly what it has received.
        sends: method, fields and body of the request; of WebSockets what follows the handshake.
    """

    name: str
    steps: list[Any]
    verdict: str
    notes: Sequence[object] = ()
    method: str = "GET"
    fields: tuple[str, ...] = ()
    sends: bytes = b""


def start(status: object = 200, *headers: Any, kind: str = "http", **more: object) -> Message:
    return {"type": f"{kind}.response.start", "status": status, "headers": [*headers], **more}


def body(content: object = b"", kind: str = "http", **more: object) -> Message:
    return {"type": f"{kind}.response.body", "body": content, **more}


def refusal(status: int, *headers: Any) -> Message:
    return start(status, *headers, kind="websocket.http")


def trailers(*headers: Any, **more: object) -> Message:
    return {"type": "http.response.trailers", "headers": [*headers], **more}


def length(size: int) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % size


OK = body(b"ok")
GONE = {"type": "http.disconnect"}


def got(content: bytes = b"", *, more: bool = False) -> Message:
    return {"type": "http.request", "body": content, "more_body": more}


CASES = [
    # What is sent
    Case("no field and one piece", [start(), OK], "200 ok"),
    Case("all statuses", [start(418), OK], "418 ok"),
    Case(
        "pieces and an empty end",
        [start(), body(b"a", more_body=True), body(b"b", more_body=True), body()],
        "200 ab",
    ),
    Case("no key body", [start(), {"type": "http.response.body"}], "200"),
    Case("a tab and a space in a value", [start(200, (b"x-a", b"<\t >")), OK], "200 x-a=<\t > ok"),
    Case(
        "bytes that are not ASCII in a value",
        [start(200, (b"x-a", b"<\xc2\xb5>")), OK],
        "200 x-a=<\xc2\xb5> ok",
    ),
    Case("lists as fields", [start(200, [b"x-a", b"b"]), OK], "200 x-a=b ok"),
    Case("fields from an iterator", [(start(200, (b"x-a", b"b")),), OK], "200 x-a=b ok"),
    Case("a field twice", [start(200, (b"x-a", b"1"), (b"x-a", b"2")), OK], "200 x-a=1 x-a=2 ok"),
    Case("a body of a HEAD", [start(), OK], "200", method="HEAD"),
    Case(
        "a coding of a HEAD",
        [start(200, (b"transfer-encoding", b"chunked")), OK],
        "200",
        method="HEAD",
    ),
    Case("a coding of its own", [start(200, (b"transfer-encoding", b"chunked")), OK], "200 ok"),
    Case("204", [start(204), body()], "204"),
    Case("204 with a coding", [start(204, (b"transfer-encoding", b"chunked")), body()], "204"),
    Case("204 that closes", [start(204, (b"connection", b"close")), body()], "204 closed"),
    Case(
        "te in a response", [start(200, (b"te", b"trailers"), (b"x-a", b"b")), OK], "200 x-a=b ok"
    ),
    # Bodies of another length
    Case("too short", [start(200, length(10)), OK], "cut"),
    Case("too long", [start(200, length(1)), OK], "200 o"),
    Case(
        "too long in pieces",
        [start(200, length(1)), body(b"o", more_body=True), body(b"k")],
        "200 o",
    ),
    # What cannot be sent
    *(
        Case(f"the name {name!r}", [[start(200, (name, b"v"))]], "500", ["error"])
        for name in (b"a b", b"a\0b", b"a(b", b"a:b", b'a"b', b"a\x7fb", b"a\tb", b"")
    ),
    Case("a value that splits", [[start(200, (b"a", b"b\r\nc: d"))]], "500", ["error"]),
    Case("a name of str", [[start(200, ("a", b"b"))]], "500", ["error"]),
    Case("a value of bool", [[start(200, (b"a", True))]], "500", ["error"]),
    Case("a status of str", [[start("201 NO CONTENT")]], "500", ["error"]),
    Case("a status of 150", [[start(150)], [OK]], "500", ["error", "error"]),
    Case("no status", [[{"type": "http.response.start"}]], "500", ["error"]),
    Case("a body of str", [start(), [body("ok")]], "500", ["error"]),
    Case("no response", [], "500"),
    Case("no body", [start()], "500"),
    Case("a body without a start", [[OK]], "500", ["error"]),
    Case("two starts", [start(), [start()]], "500", ["error"]),
    Case(
        "a start behind a piece", [start(), body(b"a", more_body=True), [start()]], "cut", ["error"]
    ),
    Case("a body behind the end", [start(), OK, [OK]], "200 ok", ["error"]),
    Case("a start behind the end", [start(), OK, [start()]], "200 ok", ["error"]),
    Case("an unknown message", [[{"type": "not_a_real_type"}], start(), OK], "200 ok", ["error"]),
    Case("an exception", ["raise"], "500"),
    Case("an exception behind a piece", [start(), body(b"a", more_body=True), "raise"], "cut"),
    Case("an exception behind the end", [start(), OK, "raise"], "200 ok"),
    Case("a cancelled task", ["cancel"], "500"),
    # Trailers
    Case(
        "trailers",
        [
            start(trailers=True),
            body(b"ok"),
            trailers((b"x-t", b"1"), more_trailers=True),
            trailers((b"X-T", b"2")),
        ],
        "200 ok x-t=1 x-t=2",
        fields=("te: trailers",),
    ),
    Case(
        "trailers without te",
        [start(trailers=True), body(b"ok"), trailers((b"x-t", b"1"))],
        "200 ok x-t=1",
    ),
    Case(
        "trailers about the connection",
        [start(trailers=True), body(b"ok"), [trailers((b"connection", b"close"))]],
        "cut",
        ["error"],
    ),
    Case(
        "pseudo fields in trailers",
        [start(trailers=True), body(b"ok"), [trailers((b":status", b"200"))]],
        "cut",
        ["error"],
    ),
    Case(
        "a body in the place of trailers",
        [start(trailers=True), body(b"ok"), [body(b"ok")]],
        "cut",
        ["error"],
    ),
    Case("no trailers", [start(trailers=True), body(b"ok")], "cut"),
    Case(
        "trailers that were not announced",
        [start(), body(b"ok"), [trailers()]],
        "200 ok",
        ["error"],
    ),
    # What is received
    Case("a request without a body", ["receive", start(), OK], "200 ok", [got()]),
    Case(
        "a request with a body",
        ["receive", start(), OK],
        "200 ok",
        [got(b"abc")],
        "POST",
        sends=b"abc",
    ),
    Case("behind the response", [start(), OK, "receive", "receive"], "200 ok", [GONE, GONE]),
    Case(
        "behind the response to an upload",
        [start(), OK, "receive"],
        "200 ok",
        [GONE],
        "POST",
        sends=b"abc",
    ),
    Case(
        "behind the body and the response",
        ["receive", start(), OK, "receive"],
        "200 ok",
        [got(b"abc"), GONE],
        "POST",
        sends=b"abc",
    ),
    Case(
        "between start and end",
        [start(), "receive", OK],
        "200 ok",
        [got(b"abc")],
        "POST",
        sends=b"abc",
    ),
    Case("an upload that nobody receives", [start(), OK], "200 ok", [], "POST", sends=b"abc"),
    Case(
        "a large upload that nobody receives",
        [start(), OK],
        "200 ok closed",
        [],
        "POST",
        sends=b"x" * 1_000_000,
    ),
    Case(
        "a field in capital letters, with spaces",
        ["headers", start(), OK],
        "200 ok",
        [(b"mycustom", b"foobar")],
        fields=("MYCUSTOM:   foobar  ", "connection: keep-alive"),
    ),
    Case(
        "fields twice",
        ["headers", start(), OK],
        "200 ok",
        [(b"a", b"1"), (b"a", b"2")],
        fields=("a: 1", "a: 2"),
    ),
    Case(
        "proxies that are not trusted",
        ["scheme", start(), OK],
        "200 ok",
        ["http"],
        fields=("x-forwarded-proto: https", "x-forwarded-for: 10.1.2.3"),
    ),
    Case(
        "upgrade to something unknown",
        ["type", start(), OK],
        "200 ok",
        ["http"],
        fields=("connection: upgrade", "upgrade: not-websocket"),
    ),
    Case(
        "upgrade to h2c",
        ["type", start(), OK],
        "200 ok",
        ["http"],
        fields=("connection: upgrade", "upgrade: h2c"),
    ),
    Case(
        "close among others",
        [start(), OK],
        "200 ok closed",
        fields=("connection:  keep-alive , CLOSE ",),
    ),
    *(
        Case(
            f"a value with {byte!r}", [start(), OK], verdict, fields=(f"x-padding: a{byte}x-b: c",)
        )
        for byte, verdict in (
            ("\x0b", "400 closed"),
            ("\x0c", "400 closed"),
            ("\x1c", "400 closed"),
            ("\x1e", "400 closed"),
        )
    ),
    Case(
        "a value with NEL",
        ["headers", start(), OK],
        "200 ok",
        [(b"x-padding", b"a\x85x-b: c")],
        fields=("x-padding: a\x85x-b: c",),
    ),
]


CONNECT = {"type": "websocket.connect"}
ACCEPT = {"type": "websocket.accept"}
CLOSE = {"type": "websocket.close"}


def text(content: object, **more: object) -> Message:
    return {"type": "websocket.send", "text": content, **more}


def left(code: int, reason: str = "") -> Message:
    return {"type": "websocket.disconnect", "code": code, "reason": reason}


def frames(*each: Frame) -> bytes:
    return b"".join(frame.encoded() for frame in each)


ABC = Frame("text", b"abc")
ENDS = Frame("close", b"\x03\xe8")
RECEIVED = {"type": "websocket.receive", "text": "abc"}

WEBSOCKETS = [
    Case(
        "text and bytes, and None",
        ["receive", ACCEPT, text("a", bytes=None), text(None, bytes=b"b"), CLOSE],
        "101 text a binary b close 1000",
        [CONNECT],
    ),
    Case(
        "a close with None",
        ["receive", ACCEPT, {**CLOSE, "code": None, "reason": None}],
        "101 close 1000",
        [CONNECT],
    ),
    Case(
        "a close with a reason",
        ["receive", ACCEPT, {**CLOSE, "code": 1001, "reason": "test"}],
        "101 close 1001 test",
        [CONNECT],
    ),
    Case("no call of receive", [ACCEPT, text("a"), CLOSE], "101 text a close 1000"),
    Case(
        "a subprotocol",
        ["subprotocols", {**ACCEPT, "subprotocol": "b"}, CLOSE],
        "101 b close 1000",
        [["a", "b"]],
        fields=("Sec-WebSocket-Protocol: a, b",),
    ),
    Case("fields", [{**ACCEPT, "headers": [(b"x-a", b"b")]}, CLOSE], "101 x-a=b close 1000"),
    Case("a cancelled task", [ACCEPT, "cancel"], "101 close 1011"),
    # Messages that have no place
    Case("send before accept", [[text("a")]], "500", ["error"]),
    Case(
        "a response behind accept",
        [ACCEPT, [refusal(200)], [start()], CLOSE],
        "101 close 1000",
        ["error", "error"],
    ),
    Case("accept behind a response", [refusal(200), [ACCEPT]], "500", ["error"]),
    Case(
        "a message without content",
        [ACCEPT, [{"type": "websocket.send"}], text("a"), CLOSE],
        "101 text a close 1000",
        ["error"],
    ),
    Case("behind close", [ACCEPT, CLOSE, [text("a")]], "101 close 1000", ["OSError"]),
    # Refusals
    Case(
        "a refusal, then receive",
        [
            "receive",
            refusal(400),
            body(b"goodbye", kind="websocket.http"),
            "receive",
        ],
        "400 goodbye",
        [CONNECT, left(1006)],
    ),
    Case(
        "a refusal with its length",
        [refusal(401, length(2)), body(b"{}", kind="websocket.http")],
        "401 {}",
    ),
    Case(
        "a refusal in bytes",
        [refusal(400), body(b"\x81\xff", kind="websocket.http")],
        "400 \x81\xff",
    ),
    Case("a refusal with a wrong status", [[refusal(150)]], "500", ["error"]),
    Case(
        "a refusal that starts twice",
        [refusal(404), [refusal(404)]],
        "500",
        ["error"],
    ),
    Case("a refusal without a body", [refusal(404)], "500"),
    # What the client has sent with its handshake
    Case(
        "messages before accept",
        ["receive", ACCEPT, "receive all", [text("a")]],
        "101 close 1000",
        [CONNECT, RECEIVED, RECEIVED, left(1000), "OSError"],
        sends=frames(ABC, ABC, ENDS),
    ),
    Case(
        "a frame behind the end",
        ["receive", ACCEPT, "receive all"],
        "101 close 1000",
        [CONNECT, left(1000)],
        sends=frames(ENDS, Frame("pong"), ABC),
    ),
    Case(
        "a close with messages that nobody receives",
        [ACCEPT, CLOSE],
        "101 close 1000",
        [],
        sends=frames(ABC, Frame("ping"), ABC),
    ),
]


def target(case: Case) -> str:
    """Path and query: the path is that of the notes."""
    return f"/{'-'.join(case.name.encode().hex(':').split(':'))}?{quote(repr(case.steps))}"


def noted(port: int, case: Case) -> list[object]:
    """The notes of an application that has ended."""
    found: list[object] = []

    def has_ended() -> bool:
        with Connection(("127.0.0.1", port)) as connection:
            path = target(case).partition("?")[0]
            answer = connection.request("GET", f"/notes?{path}").body.decode()
        found[:] = literal_eval(answer) or []
        return found[-1:] == ["end"]

    wait_for(has_ended, f"the end of the application, after {found}")
    return found[:-1]


def shown(fields: Sequence[tuple[str, str]]) -> list[str]:
    found = [(name.lower(), value) for name, value in fields]
    return [f"{name}={value}" for name, value in found if name.startswith("x-")]


def seen(port: int, case: Case) -> str:
    """The verdict over HTTP/1.1."""
    with Connection(("127.0.0.1", port)) as connection:
        sent = case.sends if case.method == "POST" else None
        connection.send_request(case.method, target(case), *case.fields, body=sent)
        try:
            answer = connection.response(case.method)
        except (BadResponse, Closed):
            return "cut"
        content = answer.body.decode() if answer.status not in (400, 500) else ""
        words = [str(answer.status), *shown(answer.headers), content, *shown(answer.trailers)]
        if answer.get("Connection") == "close":
            words.append("closed")
            assert connection.at_end()
        else:
            assert connection.request("GET", "/notes").status == 200
    return " ".join(filter(None, words))


def seen_in_stream(client: Client, case: Case) -> str:
    """The verdict over HTTP/2."""
    fields = [(field.partition(": ")[0], field.partition(": ")[2]) for field in case.fields]
    stream = client.begin(target(case), *fields, method=case.method, ended=not case.sends)
    if case.sends:
        client.send(stream, case.sends, ended=True)
    client.until(lambda: stream.is_over)
    if stream.reset:
        # 0 ends the upload behind a whole response.
        return "cut"
    content = stream.body.decode() if stream.status not in (400, 500) else ""
    words = [str(stream.status), *shown(stream.headers), content, *shown(stream.trailers)]
    return " ".join(filter(None, words))


def seen_in_websocket(port: int, case: Case) -> str:
    """The verdict on a WebSocket whose client answers the Close frame."""
    with Connection(("127.0.0.1", port)) as connection:
        lines = [f"GET {target(case)} HTTP/1.1", "Host: test", *HANDSHAKE, *case.fields, "", ""]
        connection.send("\r\n".join(lines).encode() + case.sends)
        answer = connection._head()
        words = [str(answer.status), *filter(None, [answer.get("Sec-WebSocket-Protocol")])]
        words += shown(answer.headers)
        if answer.status != 101:
            connection._body(answer, "GET")
            content = answer.body.decode("latin-1") if answer.status != 500 else ""
            return " ".join(filter(None, [*words, content]))
        kind = ""
        while kind != "close":
            opcode, size = connection._take(2)
            kind, content = NAMES[opcode & 15], connection._take(size).decode("latin-1")
            if kind == "close":
                connection.send(Frame("close", content[:2].encode("latin-1")).encoded())
                content = " ".join(
                    [str(int.from_bytes(content[:2].encode("latin-1"), "big")), content[2:]]
                )
            words += [kind, content]
        assert connection.rest() == b""
        assert not connection.was_reset
    return " ".join(words).strip()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    steps = ["receive", STARTED, "state", "receive"]
    env = {"STEPS": repr(steps)}
    with Server(APP, "asyncio", *LOOP, "--http2=on", env=env, tracebacks=True) as running:
        yield running


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_http(server: Server, case: Case) -> None:
    assert seen(server.port, case) == case.verdict
    if case.verdict != "400 closed":
        assert noted(server.port, case) == [*case.notes]


def test_http2(server: Server) -> None:
    """The same verdicts, where a request of HTTP/2 can be the same."""
    only = ("connection", "x-padding")
    cases = [case for case in CASES if not any(each.startswith(only) for each in case.fields)]
    with http2_client.client(server) as client:
        for case in cases:
            found = case.name, seen_in_stream(client, case), noted(server.port, case)
            assert found == (case.name, case.verdict.removesuffix(" closed"), [*case.notes])


@pytest.mark.parametrize("case", WEBSOCKETS, ids=[case.name for case in WEBSOCKETS])
def test_websocket(server: Server, case: Case) -> None:
    assert seen_in_websocket(server.port, case) == case.verdict
    assert noted(server.port, case) == [*case.notes]


def test_state(server: Server) -> None:
    """Keys are those of each request, values are shared; they may be set behind the startup."""
    for number, kind in enumerate(("http", "http", "websocket", "websocket")):
        if kind == "http":
            case = Case(f"state {number}", ["state", start(), OK], "200 ok")
            assert seen(server.port, case) == case.verdict
        else:
            case = Case(f"state {number}", ["state", ACCEPT, CLOSE], "101 close 1000")
            assert seen_in_websocket(server.port, case) == case.verdict
        assert noted(server.port, case) == [{"key": 2, "list": [1] * (number + 2)}]


def test_100_continue(server: Server) -> None:
    """It comes when the application receives the body, and only then."""
    for steps, interim in ((["receive", start(), OK], [100]), ([start(), OK], [])):
        case = Case(f"continue {interim}", steps, "")
        fields = ("Expect: 100-continue", "Content-Length: 3")
        with server.connect() as connection:
            connection.send_request("POST", target(case), *fields)
            if interim:
                assert connection.interim() == 100
                connection.send(b"abc")
            assert connection.response().body == b"ok"
        assert noted(server.port, case) == ([got(b"abc")] if interim else [])


def test_pipelined_requests(server: Server) -> None:
    """In their order; the last one closes, and the client has closed its half."""
    lines = [
        f"GET {target(Case(str(each), [start(200 + each), OK], ''))} HTTP/1.1\r\nHost: a"
        for each in range(3)
    ]
    connection = server.connect()
    connection.send(
        "\r\n\r\n".join(
            [*lines, "GET /notes HTTP/1.1\r\nHost: a\r\nConnection: close", *lines, ""]
        ).encode()
    )
    assert [connection.response().status for _ in range(4)] == [200, 201, 202, 200]
    assert connection.at_end()


STARTED = {"type": "lifespan.startup.complete"}
FAILED = {"type": "lifespan.startup.failed", "message": "no database"}
NOT_STOPPED = {"type": "lifespan.shutdown.failed", "message": "not closed"}


@pytest.mark.parametrize(
    ("steps", "option"), [(["receive", FAILED, "raise"], "on"), ([], "auto"), ([], "on")]
)
def test_startups(steps: list[Any], option: str) -> None:
    """One that fails ends the start; who returns knows no lifespan."""
    options = (*LOOP, "--asgi-lifespan", option)
    env = {"STEPS": repr(steps)}
    if not steps and option == "auto":
        with Server(APP, "asyncio", *options, env=env) as server:
            assert server.get("/notes").status == 200
        return
    words = ("serve", APP, "--bind", "127.0.0.1:0", "--mode", "asyncio", *options)
    done = run_command(*words, env=env)
    why = "no database" if steps else "it returned without lifespan.startup.complete"
    assert done.returncode == 4, done.stderr
    assert f"poorhttp: {APP} (lifespan): the startup failed: {why}" in done.stderr


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ([NOT_STOPPED, "raise"], "the shutdown failed: not closed"),
        (["raise"], "RuntimeError: meant to fail"),
        (["sleep"], "the shutdown takes longer than graceful_timeout"),
    ],
)
def test_shutdowns_that_fail(last: list[Any], words: str) -> None:
    """The log says so; the server ends as it would."""
    env = {"STEPS": repr(["receive", STARTED, "receive", *last])}
    env |= {"POORHTTP_GRACEFUL_TIMEOUT": "0"} if last == ["sleep"] else {}
    with Server(APP, "asyncio", *LOOP, env=env, tracebacks=True) as server:
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert words in server.log()
        server.ended()
