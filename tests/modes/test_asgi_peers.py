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
from tests.testkit.client import BadResponse, Connection
from tests.testkit.server import Server, wait_for

APP = "tests/apps/asgi_script.py:app"

Message = dict[str, Any]


class Case(NamedTuple):
    """Steps of an application, and what comes of them.

    Attributes:
        verdict: status, fields `x-...`, and body, unless the status is one of faults; `cut`: the
            response does not end; `closed`: the connection is not kept behind it.
        notes: of the application, mostly what it has received.
        sends: the body of a POST; of WebSockets what follows the handshake.
        logged: what the log says of it.
    """

    name: str
    steps: list[Any]
    verdict: str
    notes: Sequence[object] = ()
    method: str = "GET"
    fields: tuple[str, ...] = ()
    sends: bytes = b""
    logged: str = ""


def start(status: object = 200, *headers: Any, kind: str = "http", **more: object) -> Message:
    return {"type": f"{kind}.response.start", "status": status, "headers": [*headers], **more}


def body(content: object = b"", kind: str = "http", **more: object) -> Message:
    return {"type": f"{kind}.response.body", "body": content, **more}


def piece(content: bytes) -> Message:
    return body(content, more_body=True)


def refusal(status: int, *headers: Any) -> Message:
    return start(status, *headers, kind="websocket.http")


def reason(content: bytes) -> Message:
    return body(content, kind="websocket.http")


def trailers(*headers: Any, **more: object) -> Message:
    return {"type": "http.response.trailers", "headers": [*headers], **more}


def length(size: int) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % size


OK = body(b"ok")
ANNOUNCED = start(trailers=True)
CHUNKED = (b"transfer-encoding", b"chunked")
SPLITS = start(200, (b"a", b"b\r\nc: d"))
GONE = {"type": "http.disconnect"}

SPACED = ("MYCUSTOM:   foobar  ", "connection: keep-alive")
UPGRADE = ("connection: upgrade",)
PROXIED = ("x-forwarded-proto: https", "x-forwarded-for: 10.1.2.3")

#: What the log says.
RAISED = "RuntimeError: meant to fail"
BEHIND = "failed behind its response to GET '{path}': RuntimeError"
EARLY = "RuntimeError: http.response.body was sent before http.response.start"
SPLIT = "ValueError: header a: a control character would split the response"


def got(content: bytes = b"") -> Message:
    return {"type": "http.request", "body": content, "more_body": False}


CASES = [
    # What is sent
    Case("no field and one piece", [start(), OK], "200 ok"),
    Case("all statuses", [start(418), OK], "418 ok"),
    Case("pieces and an empty end", [start(), piece(b"a"), piece(b"b"), body()], "200 ab"),
    Case("no key body", [start(), {"type": "http.response.body"}], "200"),
    Case("a tab and a space in a value", [start(200, (b"x-a", b"<\t >")), OK], "200 x-a=<\t > ok"),
    Case("a value in UTF-8", [start(200, (b"x-a", b"<\xc2\xb5>")), OK], "200 x-a=<\xc2\xb5> ok"),
    Case("lists as fields", [start(200, [b"x-a", b"b"]), OK], "200 x-a=b ok"),
    Case("fields from an iterator", [(start(200, (b"x-a", b"b")),), OK], "200 x-a=b ok"),
    Case("a field twice", [start(200, (b"x-a", b"1"), (b"x-a", b"2")), OK], "200 x-a=1 x-a=2 ok"),
    Case("a body of a HEAD", [start(), OK], "200", method="HEAD"),
    Case("a coding of a HEAD", [start(200, CHUNKED), OK], "200", method="HEAD"),
    Case("a coding of its own", [start(200, CHUNKED), OK], "200 ok"),
    Case("204", [start(204), body()], "204"),
    Case("204 with a coding", [start(204, CHUNKED), body()], "204"),
    Case("204 that closes", [start(204, (b"connection", b"close")), body()], "204 closed"),
    Case("te", [start(200, (b"te", b"trailers"), (b"x-a", b"b")), OK], "200 x-a=b ok"),
    # Bodies of another length
    Case("too short", [start(200, length(10)), OK], "200 cut"),
    Case("too long", [start(200, length(1)), OK], "200 o"),
    Case("too long in pieces", [start(200, length(1)), piece(b"o"), body(b"k")], "200 o"),
    # What cannot be sent
    *(
        Case(f"the name {name!r}", [[start(200, (name, b"v"))]], "500", ["error"])
        for name in (b"a b", b"a\0b", b"a(b", b"a:b", b'a"b', b"a\x7fb", b"a\tb", b"")
    ),
    Case("a value that splits", [[SPLITS]], "500", ["error"]),
    Case("a name of str", [[start(200, ("a", b"b"))]], "500", ["error"]),
    Case("a value of bool", [[start(200, (b"a", True))]], "500", ["error"]),
    Case("a status of str", [[start("201 NO CONTENT")]], "500", ["error"]),
    Case("a status of 150", [[start(150)], [OK]], "500", ["error", "error"]),
    Case("no status", [[{"type": "http.response.start"}]], "500", ["error"]),
    Case("a body of str", [start(), [body("ok")]], "500", ["error"]),
    Case("no body", [start()], "500"),
    Case("a body without a start", [[OK]], "500", ["error"]),
    Case("two starts", [start(), [start()]], "500", ["error"]),
    Case("a start behind a piece", [start(), piece(b"a"), [start()]], "200 cut", ["error"]),
    Case("a body behind the end", [start(), OK, [OK]], "200 ok", ["error"]),
    Case("a start behind the end", [start(), OK, [start()]], "200 ok", ["error"]),
    Case("an unknown message", [[{"type": "not_a_real_type"}], start(), OK], "200 ok", ["error"]),
    *(
        Case(name, steps, verdict, logged=logged)
        for name, steps, verdict, logged in (
            ("nothing", [], "500", "RuntimeError: the application returned without a response"),
            ("an exception", ["raise"], "500", RAISED),
            ("an exception behind a piece", [start(), piece(b"a"), "raise"], "200 cut", RAISED),
            ("an exception behind the end", [start(), OK, "raise"], "200 ok", BEHIND),
            ("an exception of send", [OK], "500", EARLY),
            ("a value that splits, not caught", [SPLITS], "500", SPLIT),
            ("a cancelled task", ["cancel"], "500", "CancelledError"),
        )
    ),
    # Trailers
    Case(
        "trailers",
        [ANNOUNCED, OK, trailers((b"x-t", b"1"), more_trailers=True), trailers((b"X-T", b"2"))],
        "200 ok x-t=1 x-t=2",
        fields=("te: trailers",),
    ),
    Case("trailers without te", [ANNOUNCED, OK, trailers((b"x-t", b"1"))], "200 ok x-t=1"),
    *(
        Case(f"{name} in the place of trailers", [ANNOUNCED, OK, [wrong]], "200 cut", ["error"])
        for name, wrong in (
            ("a field about the connection", trailers((b"connection", b"close"))),
            ("a pseudo field", trailers((b":status", b"200"))),
            ("a body", OK),
        )
    ),
    Case("no trailers", [ANNOUNCED, OK], "200 cut"),
    Case("trailers that were not announced", [start(), OK, [trailers()]], "200 ok", ["error"]),
    # What is received
    Case("a request without a body", ["receive", start(), OK], "200 ok", [got()]),
    Case("behind the response", [start(), OK, "receive", "receive"], "200 ok", [GONE, GONE]),
    *(
        Case(f"an upload: {name}", steps, "200 ok", notes, sends=b"abc")
        for name, steps, notes in (
            ("received before the response", ["receive", start(), OK], [got(b"abc")]),
            ("received behind the response", [start(), OK, "receive"], [GONE]),
            ("both", ["receive", start(), OK, "receive"], [got(b"abc"), GONE]),
            ("received between start and end", [start(), "receive", OK], [got(b"abc")]),
            ("not received", [start(), OK], []),
        )
    ),
    Case("a large upload, not received", [start(), OK], "200 ok closed", sends=b"x" * 1_000_000),
    *(
        Case(name, [step, start(), OK], "200 ok", notes, fields=fields)
        for name, step, notes, fields in (
            ("capital letters and spaces", "headers", [(b"mycustom", b"foobar")], SPACED),
            ("fields twice", "headers", [(b"a", b"1"), (b"a", b"2")], ("a: 1", "a: 2")),
            ("NEL", "headers", [(b"x-padding", b"a\x85x-b: c")], ("x-padding: a\x85x-b: c",)),
            ("proxies that are not trusted", "scheme", ["http"], PROXIED),
            ("upgrade to another", "type", ["http"], (*UPGRADE, "upgrade: not-websocket")),
            ("upgrade to h2c", "type", ["http"], (*UPGRADE, "upgrade: h2c")),
        )
    ),
    Case("close", [start(), OK], "200 ok closed", fields=("connection:  keep-alive , CLOSE ",)),
    *(
        Case(f"a value with {byte!r}", [], "400 closed", fields=(f"x-padding: a{byte}x-b: c",))
        for byte in ("\x0b", "\x0c", "\x1c", "\x1e")
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
    *(
        Case(name, ["receive", ACCEPT, {**CLOSE, **fields}], f"101 close {verdict}", [CONNECT])
        for name, fields, verdict in (
            ("a close with None", {"code": None, "reason": None}, "1000"),
            ("a close with a reason", {"code": 1001, "reason": "test"}, "1001 test"),
        )
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
        ["receive", refusal(400), reason(b"goodbye"), "receive"],
        "400 goodbye",
        [CONNECT, left(1006)],
    ),
    Case("a refusal with its length", [refusal(401, length(2)), reason(b"{}")], "401 {}"),
    Case("a refusal in bytes", [refusal(400), reason(b"\x81\xff")], "400 \x81\xff"),
    Case("a refusal with a wrong status", [[refusal(150)]], "500", ["error"]),
    Case("a refusal that starts twice", [refusal(404), [refusal(404)]], "500", ["error"]),
    Case("a refusal without a body", [refusal(404)], "500"),
    Case("raises behind it", [refusal(404), reason(b"a"), "raise"], "404 a", logged=BEHIND),
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
        sends=frames(ABC, Frame("ping"), ABC),
    ),
]


def path(case: Case) -> str:
    """The path of its request, which is that of its notes."""
    return f"/{case.name.encode().hex('-')}"


def target(case: Case) -> str:
    return f"{path(case)}?{quote(repr(case.steps))}"


def noted(port: int, case: Case) -> list[object]:
    """The notes of an application that has ended."""
    found: list[object] = []

    def has_ended() -> bool:
        with Connection(("127.0.0.1", port)) as connection:
            answer = connection.request("GET", f"/notes?{path(case)}").body.decode()
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
        method = "POST" if case.sends else case.method
        connection.send_request(method, target(case), *case.fields, body=case.sends or None)
        answer = connection._head()
        try:
            connection._body(answer, method)
        except BadResponse:
            return f"{answer.status} cut"
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
    fields = [(name, value) for name, _, value in (each.partition(": ") for each in case.fields)]
    method = "POST" if case.sends else case.method
    stream = client.begin(target(case), *fields, method=method, ended=not case.sends)
    if case.sends:
        client.send(stream, case.sends, ended=True)
    client.until(lambda: stream.is_over)
    if stream.reset:
        # 0 ends the upload behind a whole response.
        return f"{stream.status} cut"
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
            said = answer.body.decode("latin-1") if answer.status != 500 else ""
            return " ".join(filter(None, [*words, said]))
        kind = ""
        while kind != "close":
            opcode, size = connection._take(2)
            kind, content = NAMES[opcode & 15], connection._take(size)
            words.append(kind)
            if kind == "close":
                connection.send(Frame("close", content[:2]).encoded())
                words.append(str(int.from_bytes(content[:2], "big")))
                content = content[2:]
            words.append(content.decode("latin-1"))
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
    start = server.log_size()
    assert seen(server.port, case) == case.verdict
    if case.verdict != "400 closed":
        assert noted(server.port, case) == [*case.notes]
    logged = case.logged.format(path=path(case))
    wait_for(lambda: logged in server.log(start), f"{logged} in the log")


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
    start = server.log_size()
    assert seen_in_websocket(server.port, case) == case.verdict
    assert noted(server.port, case) == [*case.notes]
    logged = case.logged.format(path=path(case))
    wait_for(lambda: logged in server.log(start), f"{logged} in the log")


def test_state(server: Server) -> None:
    """Keys are those of each request, values are shared; they may be set behind the startup."""
    http = [start(), OK], "200 ok", seen
    websocket = [ACCEPT, CLOSE], "101 close 1000", seen_in_websocket
    for number, (steps, verdict, see) in enumerate((http, http, websocket, websocket)):
        case = Case(f"state {number}", ["state", *steps], verdict)
        assert see(server.port, case) == verdict
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
    last = "GET /notes HTTP/1.1\r\nHost: a\r\nConnection: close"
    connection = server.connect()
    connection.send("\r\n\r\n".join([*lines, last, *lines, ""]).encode())
    assert [connection.response().status for _ in range(4)] == [200, 201, 202, 200]
    assert connection.at_end()


STARTED = {"type": "lifespan.startup.complete"}
FAILED = {"type": "lifespan.startup.failed", "message": "no database"}
NOT_STOPPED = {"type": "lifespan.shutdown.failed", "message": "not closed"}


TRACEBACK = "Traceback (most recent call last):\n  ...\nRuntimeError: no pool\n"


@pytest.mark.parametrize(
    ("steps", "option", "why"),
    [
        (["receive", FAILED, "raise"], "on", "no database"),
        (["receive", {**FAILED, "message": TRACEBACK}], "auto", "RuntimeError: no pool"),
        (["receive", "raise"], "auto", "RuntimeError: meant to fail"),
        (["raise"], "on", "RuntimeError: meant to fail"),
        ([], "on", "it returned without lifespan.startup.complete"),
    ],
    ids=["failed", "failed with a traceback", "raised later", "raised at once", "returned"],
)
def test_startups_that_fail(steps: list[Any], option: str, why: str) -> None:
    options = ("--mode", "asyncio", *LOOP, "--asgi-lifespan", option)
    words = ("serve", APP, "--bind", "127.0.0.1:0", *options)
    done = run_command(*words, env={"STEPS": repr(steps)})
    assert done.returncode == 4, done.stderr
    assert f"poorhttp: {APP} (lifespan): the startup failed: {why}" in done.stderr


@pytest.mark.parametrize(
    ("steps", "option"),
    [(["raise"], "auto"), ([], "auto"), (["receive", FAILED], "off")],
    ids=["raises at once", "returns", "is not called"],
)
def test_applications_without_lifespan(steps: list[Any], option: str) -> None:
    env = {"STEPS": repr(steps)}
    with Server(APP, "asyncio", *LOOP, "--asgi-lifespan", option, env=env) as server:
        assert server.get("/notes").status == 200


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([STARTED, "receive", NOT_STOPPED, "raise"], "the shutdown failed: not closed"),
        ([STARTED, "receive", "raise"], "RuntimeError: meant to fail"),
        ([STARTED, "receive", "sleep"], "the shutdown takes longer than graceful_timeout"),
        # Not behind the startup: the shutdown could come then.
        (["nothing comes", STARTED, "receive", NOT_STOPPED], "the shutdown failed: not closed"),
    ],
)
def test_shutdowns_that_fail(steps: list[Any], words: str) -> None:
    """The log says so; the server ends as it would."""
    env = {"STEPS": repr(["receive", *steps])}
    env |= {"POORHTTP_GRACEFUL_TIMEOUT": "0"} if "sleep" in steps else {}
    with Server(APP, "asyncio", *LOOP, env=env, tracebacks=True) as server:
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert words in server.log()
        server.ended()
