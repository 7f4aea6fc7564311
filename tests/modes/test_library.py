"""poorhttp as a library: a server within a program, and a program that serves."""

from __future__ import annotations

import itertools
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from wsgiref.validate import validator

import pytest

import poorhttp
from poorhttp.api import PROCESS_OPTIONS
from poorhttp.errors import BindError, ConfigError
from tests.support.library_program import LibraryProgram
from tests.testkit.client import HANG, Connection
from tests.testkit.server import MODES, wait_for

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

pytestmark = pytest.mark.each_mode


def hello(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello from ", threading.current_thread().name.encode()]


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=HANG) as answer:
        body: bytes = answer.read()
        return body


def opened(server: poorhttp.Server) -> Connection:
    host, _, port = server.url.removeprefix("http://").rstrip("/").partition(":")
    return Connection((host, int(port)))


def test_two_servers_one_after_the_other_and_at_once() -> None:
    before = threading.active_count()
    for _ in range(3):
        with poorhttp.Server(validator(hello)) as one, poorhttp.Server(hello) as two:
            assert one.url != two.url
            for server in (one, two):
                assert server.url.startswith("http://127.0.0.1:")
                for _ in range(3):
                    assert get(server.url).startswith(b"hello from ")
        with pytest.raises(urllib.error.URLError):
            get(one.url)
    assert threading.active_count() == before, "threads are left behind"


def test_server_takes_options() -> None:
    server = poorhttp.Server(hello, threads=2, server_header="mine")
    with server, opened(server) as connection:
        assert connection.request("GET", "/").get("Server") == "mine"
    with pytest.raises(ConfigError, match="threads"):
        poorhttp.Server(hello, thraeds=2).__enter__()


@pytest.mark.parametrize("name", sorted(PROCESS_OPTIONS))
def test_server_refuses_what_it_does_not_apply(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    values: dict[str, object] = {
        **dict.fromkeys(("chdir", "pythonpath"), "/"),
        **{name: "os:getpid" for name in PROCESS_OPTIONS if name.startswith("hook_")},
        "after_fork": "os:getpid",
        "env": "NAME=value",
        **dict.fromkeys(("user", "group"), "0"),
        "umask": "0022",
        "pidfile": tmp_path / "pid",
        "admin": "127.0.0.1:0",
        **dict.fromkeys(("reload_include", "reload_exclude"), "*.sql"),
        **dict.fromkeys(("autoreload", "debug", "otel", "asgi_lifespan"), "on"),
        **dict.fromkeys(("asgi_pathsend", "websocket_compression"), "off"),
        "statsd": "127.0.0.1:8125",
        "asgi_concurrency": "9",
        "asgi_loop": "asyncio",
        **dict.fromkeys(("preload", "live", "profile", "https", "open"), True),
    }
    message = f"^{name}: not available in a Server, which runs in threads"
    with pytest.raises(ConfigError, match=message):
        poorhttp.Server(hello, **{name: values.get(name, 7)})  # type: ignore[arg-type]
    assert not [*tmp_path.iterdir()], "nothing is made for what is refused"


def test_server_names_all_that_it_refuses() -> None:
    with pytest.raises(ConfigError, match=r"^workers, user: not available in a Server"):
        poorhttp.Server(hello, workers=2, user="nobody", threads=2)
    # What it does, and what is the default, may be said.
    with poorhttp.Server(hello, workers=1, preload=False) as server:
        assert get(server.url)


def test_server_on_an_occupied_port() -> None:
    with poorhttp.Server(hello) as server:
        address = server.url.removeprefix("http://").rstrip("/")
        with pytest.raises(BindError, match=address), poorhttp.Server(hello, bind=address):
            pass


@pytest.mark.parametrize("mode", ["threading", "single"])
def test_an_endless_response_does_not_keep_a_server_from_closing(
    mode: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return itertools.repeat(b"on and on")

    before = threading.active_count()
    server = poorhttp.Server(application, mode=mode, graceful_timeout=0.1)
    with opened(server) as client:
        client.send(b"GET /for-ever HTTP/1.0\r\n\r\n")
        assert client.socket.recv(8) == b"HTTP/1.1"
        server.close()
        # The end of the connection would look like the end of the response.
        client.rest()
        assert client.was_reset
    assert threading.active_count() == before
    log = capfd.readouterr().err
    assert "warning: graceful_timeout (0.1 s) is over; cut off: request 1 GET /for-ever\n" in log
    assert "the client" not in log


def test_a_request_that_does_not_end_keeps_only_its_thread(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Requests of other servers are not named."""
    begun, go = threading.Semaphore(0), threading.Event()

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        begun.release()
        go.wait(HANG)
        return hello(environ, start_response)

    before = threading.active_count()
    other = poorhttp.Server(application, threads=1)
    server = poorhttp.Server(application, graceful_timeout=0.1)
    with opened(other) as patient, opened(server) as client:
        for number, one in enumerate((patient, client)):
            one.send(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number)
            assert begun.acquire(timeout=HANG)
        server.close()
        assert client.at_end()
        assert threading.active_count() == before + 2
        log = capfd.readouterr().err
        assert "cut off: request 1 GET /1; the application does not end, and keeps its th" in log
        go.set()
        assert patient.response().status == 200
    other.close()
    assert capfd.readouterr().err == ""
    wait_for(lambda: threading.active_count() == before, "the end of its thread")


def test_event_streams_keep_no_thread_of_the_pool(capfd: pytest.CaptureFixture[str]) -> None:
    go = threading.Event()

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/stream":
            return hello(environ, start_response)
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        return (b"data: 1\n\n" for _ in range(2) if not go.wait(_ and HANG))

    before = threading.active_count()
    with poorhttp.Server(application, threads=2) as server:
        clients = [opened(server) for _ in range(3)]
        for client in clients:
            client.send(b"GET /stream HTTP/1.0\r\n\r\n")
        assert get(server.url).startswith(b"hello from ")
        go.set()
        for client in clients:
            assert b"200 OK" in client.rest()
            client.close()
    assert threading.active_count() == before
    assert capfd.readouterr().err == ""


def test_a_request_closes_its_own_server() -> None:
    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        server.close()
        return hello(environ, start_response)

    server = poorhttp.Server(application)
    assert get(server.url).startswith(b"hello from ")
    with pytest.raises(urllib.error.URLError):
        get(server.url)


SCRIPT = """
import poorhttp

def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]

poorhttp.serve(application, bind="127.0.0.1:0", mode={mode!r})
print("served")
"""


@pytest.mark.parametrize("mode", MODES)
def test_serve(mode: str) -> None:
    """A program of five lines; TERM ends serve(), and the program goes on."""
    with LibraryProgram(SCRIPT.format(mode=mode)) as program:
        assert program.mode == mode
        assert get(program.url) == b"hello"
        assert program.terminate() == "served\n"
        assert "Traceback" not in program.log()
