"""Mode asyncio: ASGI applications over HTTP, their lifespan and their faults; WSGI in threads."""

from __future__ import annotations

import gzip
import os
import re
import signal
import socket
import time
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from poorhttp.plugins.asgi.scope import environ_of
from tests.support import http2_client, tls_client
from tests.support.certificate import certificate
from tests.support.development import Started
from tests.support.forked_command import run_command
from tests.testkit.client import Connection, receive_until
from tests.testkit.server import ROOT, Program, Server, command, wait_for

APP = "tests/apps/asgi.py"

#: So that the tests run with the same loop wherever they run.
LOOP = ("--asgi-loop", "asyncio")


def serve(*options: str, app: str = f"{APP}:app", **more: Any) -> Server:
    return Server(app, "asyncio", *LOOP, *options, **more)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve("--http2", "on", tracebacks=True) as running:
        yield running


def scope_of(response: Any) -> dict[str, Any]:
    """What the application was told of the request, which it has answered with it."""
    found: dict[str, Any] = literal_eval(response.body.decode())
    return found


def events(server: Server) -> list[str]:
    found: list[str] = literal_eval(server.get("/events").body.decode())
    return found


def wait_event(server: Server, event: str) -> None:
    wait_for(lambda: event in events(server), f"the application notes {event}")


def test_scope(server: Server) -> None:
    connection = server.connect()
    fields = ("X-A: 1", "X_A: 2", "Cookie: a=b", "cookie: c=d", "x-b: \xe9")
    for _ in range(2):
        # The head of the second request is known, and what the application has changed is not kept.
        scope = scope_of(connection.request("GET", "/scope?a=%20b", *fields))
        port = connection.socket.getsockname()[1]
        assert scope.pop("headers") == [
            (b"host", b"test"),
            (b"x-a", b"1"),
            (b"x-b", b"\xe9"),
            (b"cookie", b"a=b; c=d"),
        ]
        assert scope == {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/scope",
            "raw_path": b"/scope",
            "query_string": b"a=%20b",
            "root_path": "",
            "client": ("127.0.0.1", port),
            "server": ("127.0.0.1", server.port),
            "extensions": {
                "http.response.pathsend": {},
                "http.response.early_hint": {},
                "http.response.trailers": {},
            },
            "state": {"started": True},
        }
    response = connection.request("GET", "/%c3%A4%2f%ff")
    assert dict(response.headers)["x-path"] == "/\xc3\xa4/\xef\xbf\xbd"


def test_files_that_are_not_offered() -> None:
    with serve("--no-asgi-pathsend") as server:
        scope = scope_of(server.get("/scope"))
    assert {*scope["extensions"]} == {"http.response.early_hint", "http.response.trailers"}


def test_environ_for_hooks() -> None:
    """Hooks of other plug-ins see the names of WSGI."""
    pairs = [(b"content-type", b"a/b"), (b"content-length", b"3"), (b"x-a", b"1"), (b"x-a", b"2")]
    scope: dict[str, Any] = {"method": "POST", "path": "/", "query_string": b""}
    scope["http_version"] = "1.1"
    scope |= {"scheme": "http", "client": None, "server": ("a", 80), "headers": pairs}
    environ = environ_of(scope)
    names = ("CONTENT_TYPE", "CONTENT_LENGTH", "HTTP_X_A", "HTTP_CONTENT_TYPE")
    assert [environ.get(name) for name in names] == ["a/b", "3", "1, 2", None]


def test_bodies(server: Server) -> None:
    """Bodies are given in parts while they come, and as a whole in one system call."""
    connection = server.connect()
    assert connection.request("POST", "/echo", body=b"ab" * 500_000).body == b"1000000 {97, 98}"
    chunked = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection.send(chunked + b"3\r\nabc\r\n")
    wait_event(server, "got 3")
    connection.send(b"2\r\nde\r\n0\r\n\r\n")
    assert connection.response().body.startswith(b"5 ")
    connection.send(chunked + b"x\r\n")
    assert connection.response().status == 400


def test_pieces(server: Server, tmp_path: Path) -> None:
    connection, gate = server.connect(), tmp_path / "gate"
    connection.send_request("GET", f"/pieces?{gate}")
    assert connection.socket.recv(1) == b"H"
    gate.touch()
    rest = receive_until(connection, b"0\r\n\r\n")
    assert b"Transfer-Encoding: chunked\r\n" in rest
    assert connection.request("HEAD", "/pieces").status == 200
    assert connection.request("GET", "/").body == b"asgi"


@pytest.mark.parametrize("options", [(), ("--compress",)])
def test_files_and_early_hints(options: tuple[str, ...]) -> None:
    content = (ROOT / APP).read_bytes()
    with serve(*options, tracebacks=True) as server:
        connection = server.connect()
        response = connection.request("GET", f"/file?{ROOT / APP}", "Accept-Encoding: gzip")
        assert (gzip.decompress(response.body) if options else response.body) == content
        assert response.interim == [103]
        assert connection.request("HEAD", f"/file?{ROOT / APP}").body == b""
        assert connection.request("GET", "/file?/nowhere").status == 500


def test_parts_of_files(server: Server, tmp_path: Path) -> None:
    """An application answers 206 with the path of the whole file."""
    file = tmp_path / "file"
    file.write_bytes(bytes(range(256)) * 1024)
    size = file.stat().st_size
    os.mkfifo(tmp_path / "pipe")
    with server.connect() as connection:
        for begin, end in ((100, 299), (0, 0), (size - 10, size - 1)):
            response = connection.request("GET", f"/file?{file}&{begin}-{end}/{size}")
            assert response.status == 206
            assert response.body == file.read_bytes()[begin : end + 1]
        # It has become shorter, or was never a file whose content can be sent.
        for path in (f"{file}&{size}-{size + 1}/{size + 2}", f"{file}&9-7/*", f"{tmp_path}/pipe"):
            assert connection.request("GET", f"/file?{path}").status == 500, path
        # One that has this part alone.
        assert connection.request("GET", f"/file?{file}&9-{size + 8}/*").body == file.read_bytes()


def test_clients_that_read_slowly_and_leave() -> None:
    size = 30_000_000
    # Nothing of responses is written to a file.
    with serve("--spool-limit", "0") as server:
        slow = server.connect()
        slow.send_request("GET", f"/large?{size}")
        assert slow.socket.recv(1, socket.MSG_PEEK) == b"H"
        # The application waits, and others are answered.
        assert "half" not in events(server)
        assert len(slow.response().body) == 2 * size
        wait_event(server, "sent")
        with Connection(("127.0.0.1", server.port)) as leaver:
            leaver.send_request("GET", "/left")
            wait_event(server, "waits")
        wait_event(server, "left")
        wait_for(lambda: any("an OSError" in each for each in events(server)), "an OSError of send")


def test_fields_about_the_connection(server: Server) -> None:
    connection = server.connect()
    for _ in range(2):
        response = connection.request("GET", "/passed-on")
        assert response.body == b"passed on"
        names = {name.lower() for name, _ in response.headers}
        assert names == {"content-length", "date", "server"}
    assert connection.request("GET", "/passed-on?x,close").get("Connection") == "close"


def test_trailers(server: Server) -> None:
    connection = server.connect()
    connection.send_request("GET", "/trailers")
    rest = receive_until(connection, b"\r\n\r\n4\r\nbody\r\n0\r\nx-1: \xe9\r\nx-2: \xe9\r\n\r\n")
    assert rest.startswith(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")
    # Without a place for them, a response goes without.
    for version, method, body in (("HTTP/1.0", "GET", b"body"), ("HTTP/1.1", "HEAD", b"")):
        response = server.connect().request(method, "/trailers", version=version)
        assert (response.status, response.body) == (200, body)
    with http2_client.client(server) as client:
        stream = client.get("/trailers")
        assert (stream.body, stream.trailers) == (b"body", [("x-1", "\xe9"), ("x-2", "\xe9")])
    start = server.log_size()
    connection.send_request("GET", "/trailers?split")
    wait_for(lambda: "header name" in server.log(start), "the refusal of a trailer")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_http2(scheme: str, tmp_path: Path) -> None:
    """Proxies are trusted, uploads stream, and the end of a stream is the client's leave."""
    certificate().write(tmp_path / "pem")
    options = (
        *("--http2=on", "--trusted-proxies=127.0.0.1", "--spool-limit=0"),
        *("--tls-certificate", str(tmp_path / "pem"), "--mount", f"/scope={APP}:app"),
    )
    bind = ("127.0.0.1:0", "https://127.0.0.1:0")
    with serve(*options, bind=bind, tracebacks=True) as server:
        address: Any = ("127.0.0.1", server.port)
        with http2_client.Client(
            address if scheme == "http" else http2_client.tls(server, "h2"), window=10_000
        ) as client:
            fields = ("x-forwarded-for", "9.9.9.9"), ("x-forwarded-proto", "https")
            scope = scope_of(client.get("/scope", *fields))
            names = ("http_version", "client", "scheme", "root_path")
            assert [scope[name] for name in names] == ["2", ("9.9.9.9", 0), "https", "/scope"]
            scope = scope_of(client.get("/scope"))
            assert (scope["client"][0], scope["scheme"]) == ("127.0.0.1", scheme)

            upload = client.begin("/echo", method="POST", ended=False)
            client.send(upload, b"a" * 10)
            wait_event(server, "got 10")
            client.send(upload, b"a" * 99_990, ended=True)
            assert client.whole(upload).body == b"100000 {97}"

            left = client.begin("/left")
            wait_event(server, "waits")
            client.reset(left)
            wait_event(server, "left")
            client.reads = False
            stalled = client.begin("/large?30000000")
            client.until(lambda: stalled.pieces)
            client.reset(stalled)
            end = "GET /large?30000000: the client left before the end of the response"
            wait_for(lambda: end in server.log(), "the end of a response that nobody reads")
            assert "sent" not in events(server)
            client.reads, stalled.unread = True, 0
            failed = client.get("/fail?late")
            assert (failed.body, failed.ended, failed.reset) == (b"some", False, 2)
            assert client.get("/").body == b"asgi"


def test_tls_extension(tmp_path: Path) -> None:
    pem = tls_client.write(tmp_path, "server.pem", certificate().issued)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "clients.pem"))
    client = authority.issue_cert("anna.example", common_name="Anna")
    options = ("--tls-certificate", pem, "--tls-client-ca", str(tmp_path / "clients.pem"))
    made = tls_client.context("1.3", client=client)
    with serve(*options, bind=tls_client.BIND) as server, server.connect() as connection:
        connection.socket = made.wrap_socket(connection.socket, server_hostname="localhost")
        scope = scope_of(connection.request("GET", "/scope"))
    found = scope["extensions"]["tls"]
    assert (found["tls_version"], found["client_cert_error"]) == (0x0304, None)
    assert found["cipher_suite"] in (0x1301, 0x1302, 0x1303)
    assert found["client_cert_name"].startswith("CN=Anna,")
    pem_of_client = client.cert_chain_pems[0].bytes().decode()
    assert found["client_cert_chain"][0].strip() == pem_of_client.strip()
    assert scope["scheme"] == "https"


def test_too_many_requests() -> None:
    with serve("--asgi-concurrency", "1") as server:
        with Connection(("127.0.0.1", server.port)) as waits:
            waits.send_request("GET", "/left")
            wait_for(lambda: server.get("/").status == 503, "a refusal")
            response = server.get("/", "Accept: */*")
            assert (response.status, response.get("Retry-After")) == (503, "1")
        wait_for(lambda: server.get("/").body == b"asgi", "room for a request")
        assert server.log().count("1 requests run (asgi_concurrency)") == 1


def test_blocked_loop(tmp_path: Path) -> None:
    """Its line is named, and who waits for it longer than `queue_timeout` is refused."""
    free = tmp_path / "free"
    options = ("--slow-request", "0.2", "--queue-timeout", "0.1")
    with serve(*options, tracebacks=True) as server:
        connection, late = server.connect(), server.connect()
        connection.send_request("GET", f"/block?{free}")
        said = "for 0.2 s (slow_request) the event loop is blocked in"
        server.wait_log(f"GET /block?{free}: {said} {ROOT / APP}:")
        late.send_request("GET", "/")
        # It has waited when two more times have passed in the application.
        start = time.monotonic()
        wait_for(lambda: time.monotonic() > start + 0.2, "more time than queue_timeout")
        free.touch()
        assert connection.response().body == b"unblocked"
        assert late.response().status == 503
        assert server.get("/").status == 200


def test_requests_that_are_counted() -> None:
    """A worker is replaced behind so many, and no request is lost."""
    with serve("--max-requests", "5") as server:

        def is_replaced_twice() -> bool:
            assert server.get("/behind").body == b"all"
            return server.log().count("it has begun max_requests requests") >= 2

        wait_for(is_replaced_twice, "two workers that are replaced")


def test_tasks_in_stacks(tmp_path: Path) -> None:
    admin = ("--admin", f"unix:{tmp_path / 'admin'}")
    with serve(*admin) as server:
        server.connect().send_request("GET", "/sleep")
        wait_event(server, "sleeps")
        said = run_command("ctl", "stacks", *admin).stdout
        found = re.search(r"task \S+ runs request \d+ GET /sleep .*\n    app  (\S+):\d+\n", said)
        assert found, said
        assert found[1] == str(ROOT / APP)
        assert "idle" in said.partition("no stack is known")[0], said
        server.kill()


def test_mode_of_asgi_applications(tmp_path: Path) -> None:
    """Without an option that names one, it follows from the source."""
    words = command("serve", f"{APP}:app", "--bind", "127.0.0.1:0")
    with Started(*words, cwd=ROOT, reloads=False) as server:
        assert (server.mode, server.get("/").body) == ("asyncio", b"asgi")
    with Started(*command("serve", f"{APP}:wsgi"), cwd=ROOT, reloads=False) as server:
        assert server.mode == "threading"


def test_error_pages() -> None:
    with serve("--debug", "on", tracebacks=True) as server:
        for path in ("/fail?early", "/answered"):
            response = server.get(path, "Accept: text/html")
            assert response.status == 500
            assert b"Werkzeug" in response.body
            assert b"RuntimeError: meant to fail" in response.body
            assert server.get(path).body.rstrip().startswith(b"Traceback (most recent call last):")
        assert server.log().count("GET /answered: the application failed") == 2
        assert server.get("/").body == b"asgi"


def test_context_of_each_request(server: Server) -> None:
    assert [server.get(f"/context?{number}").body for number in (1, 2)] == [b"0 1", b"0 2"]


def test_wsgi_beside_asgi() -> None:
    mounts = ("--mount", f"/old={APP}:wsgi", "--static", "/files=tests/apps")
    with serve(*mounts) as server:
        assert server.get("/new").body == b"asgi"
        response = server.request("POST", "/old/x", body=b"abc")
        assert literal_eval(response.body.decode()) == (False, "/old", "/x", 3)
        assert server.get("/files/asgi.py").body.startswith(b'"""An ASGI')


def test_asgi_below_a_prefix() -> None:
    with serve("--mount", f"/scope={APP}:app", app=f"{APP}:wsgi") as server:
        response = server.request("POST", "/old", body=b"abc")
        assert literal_eval(response.body.decode()) == (False, "", "/old", 3)
        scope = scope_of(server.get("/scope"))
        assert (scope["root_path"], scope["path"]) == ("/scope", "/scope")


@pytest.mark.parametrize("target", ["/sleep", "/sleep?behind"])
def test_stop_of_requests_that_take_too_long(target: str, tmp_path: Path) -> None:
    """They are cancelled behind `graceful_timeout`, then the application is shut down.

    This holds also for those that go on behind their responses.
    """
    notes = tmp_path / "notes"
    env = {"NOTES": str(notes), "POORHTTP_GRACEFUL_TIMEOUT": "1"}
    with serve("--drain-timeout", "0", env=env) as server:
        server.connect().send_request("GET", target)
        wait_event(server, "sleeps")
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert notes.read_text() == "started\nwoken\nstopped\n"
        assert "cancelled, because graceful_timeout is over" in server.log()
        server.kill()


def test_stop_of_wsgi_without_a_main_process(tmp_path: Path) -> None:
    """What takes too long is cut off, and what waits for a thread behind it is not run any more."""
    gate, options = tmp_path / "gate", ("--supervisor", "off", "--threads", "1")
    env = {"POORHTTP_GRACEFUL_TIMEOUT": "0.5"}
    with serve(*options, app="tests/apps/gate.py", env=env) as server:
        server.enter(gate)
        server.connect().send_request("GET", f"/wait?{gate}-never")
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert "stopped with requests still in flight: request 1 GET /wait?" in server.log()
        assert "-never\n" not in server.log()
        server.kill()


def test_stop_waits_for_what_goes_on_behind_a_response(tmp_path: Path) -> None:
    gate, notes = tmp_path / "gate", tmp_path / "notes"
    with serve(env={"NOTES": str(notes)}) as server:
        assert server.get(f"/behind?{gate}").body == b"all"
        wait_event(server, "behind")
        server.leave()
        server.process.send_signal(signal.SIGTERM)
        wait_for(server.is_refusing, "the stop")
        gate.touch()
        assert server.wait() == 0
        assert notes.read_text() == "started\nbehind\nstopped\n"
        server.ended()


@pytest.mark.parametrize(("path", "verb"), [("/sleep", "waits"), ("/block", "is")])
def test_request_timeout(path: str, verb: str) -> None:
    options = ("--request-timeout", "0.5")
    with serve(*options, tracebacks=True) as server:
        assert server.get(f"/file?{ROOT / APP}").status == 200
        assert server.get(path).status == 504
        assert "GET /file" not in server.log()
        server.wait_log(f"(request_timeout) the application {verb} in {ROOT / APP}:")
        assert server.get("/").body == b"asgi"


def test_stop_during_a_startup(tmp_path: Path) -> None:
    """The lifespan is cancelled, which is no failure."""
    notes = tmp_path / "notes"
    notes.touch()
    words = command("serve", f"{APP}:app", "--bind", "127.0.0.1:0", "--mode", "asyncio", *LOOP)
    with Program(*words, env={"LIFESPAN": "waits", "NOTES": str(notes)}) as server:
        wait_for(lambda: notes.read_text() == "waits\n", "the startup")
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert notes.read_text() == "waits\nwoken\n"
        assert server.log() == ""
