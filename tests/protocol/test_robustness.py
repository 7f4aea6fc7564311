"""Robustness: broken exceptions, forks, signals at any moment, aborting clients."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import poorhttp
from tests.conftest import Serve
from tests.support.library_program import LibraryProgram
from tests.testkit.client import HANG, BadResponse, Closed, Connection
from tests.testkit.process import children
from tests.testkit.server import (
    READY,
    ROOT,
    Program,
    Server,
    command,
    environment,
    mode_options,
    wait_for,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

ROBUST = str(ROOT / "tests/apps/robust.py")
GATE = str(ROOT / "tests/apps/gate.py")

#: Longer than any test waits: a server that only ends because of it, hangs.
PATIENT = ("--graceful-timeout", "600")

IMPORTING = """\
import sys, time
sys.stderr.write("importing\\n")
sys.stderr.flush()
while True:
    time.sleep(0.01)
"""


def enter(server: Server, gate: Path, path: str = "/wait") -> Connection:
    """A connection whose request is being answered until the file `gate` exists."""
    connection = server.connect()
    connection.send_request("GET", f"{path}?{gate}")
    server.wait_log(f"entered {gate}\n")
    return connection


def refuses(server: Server) -> bool:
    """Whether nobody listens any more."""
    try:
        with Connection(("127.0.0.1", server.port)):
            pass
    except ConnectionRefusedError:
        return True
    return False


def lives(server: Server) -> None:
    """Check that the server answers, and that no worker had to be replaced."""
    assert server.get("/pid").status == 200
    assert "is replaced" not in server.log()


def workers(server: Server) -> set[int]:
    """The processes that may answer."""
    return set(children(server.process.pid))


# Exceptions


@pytest.mark.parametrize("path", ["/surrogate", "/unspeakable"])
def test_exceptions_that_cannot_be_shown(serve: Serve, path: str) -> None:
    server = serve(ROBUST, tracebacks=True)
    for _ in range(20):
        assert server.get(path).status == 500
    lives(server)


@pytest.mark.parametrize("which", ["name", "value", "number", "three", "object", "no-tuple"])
def test_header_whose_repr_calls_start_response(serve: Serve, which: str) -> None:
    server = serve(ROBUST, tracebacks=True)
    assert server.get(f"/evil?{which}").status == 500
    lives(server)


def test_start_response_without_headers(serve: Serve) -> None:
    server = serve(ROBUST, tracebacks=True)
    assert server.get("/no_headers").status == 500
    server.wait_log("TypeError: ")
    wait_for(
        lambda: re.search(r"TypeError: .*start_response.*", server.log()), "a TypeError that helps"
    )


@pytest.mark.parametrize("path", ["/fail", "/wrong_chunk"])
def test_earlier_pipelined_answers_are_sent(serve: Serve, path: str) -> None:
    server = serve(ROBUST, tracebacks=True)
    with server.connect() as connection:
        line = "GET {} HTTP/1.1\r\nHost: test\r\n\r\n"
        connection.send((line.format("/pid") * 5 + line.format(path)).encode())
        for _ in range(5):
            assert connection.response().status == 200
        if path == "/fail":
            assert connection.response().status == 500
        else:
            with pytest.raises((BadResponse, Closed)):
                connection.response()
    lives(server)


def test_earlier_answers_are_sent_before_one_that_is_cut(serve: Serve) -> None:
    """Although its beginning still waits for the client when it fails."""
    server = serve(ROBUST, tracebacks=True)
    for _ in range(5):
        with server.connect() as connection:
            line = "GET {} HTTP/1.1\r\nHost: test\r\n\r\n"
            connection.send((line.format("/pid") * 5 + line.format("/wrong_late")).encode())
            server.get("/pid")
            for _ in range(5):
                assert connection.response().status == 200
            with pytest.raises(BadResponse):
                connection.response()
    lives(server)


def test_end_of_a_connection_is_no_end_of_an_answer(serve: Serve) -> None:
    """To HTTP/1.0 nothing else tells that an answer is complete; one that is not is reset."""
    connection = serve(ROBUST, tracebacks=True).connect()
    connection.send_request("GET", "/wrong_late", version="HTTP/1.0")
    with pytest.raises(ConnectionResetError):
        list(iter(lambda: connection.socket.recv(65_536), b""))


# Bodies


def test_write_then_file(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 1000)
    answer = serve(ROBUST, tracebacks=True).get(f"/write_then_file?{path}")
    assert answer.body == b"written " + path.read_bytes()


def test_input_without_a_body_keeps_nothing(serve: Serve) -> None:
    server = serve(ROBUST, tracebacks=True)
    with server.connect() as connection:
        for _ in range(3):
            assert connection.request("GET", "/attribute").body == b"nothing refused"


# Forks


@pytest.mark.parametrize(
    "target", ["/fork?exit", "/fork?raise", "/fork?return", "/fork_between"], ids=lambda path: path
)
def test_fork_in_a_handler(mode: str, target: str) -> None:
    """The child's way back ends it, without a word to the client."""
    with Server(ROBUST, mode, tracebacks=True) as server:
        serving = workers(server)
        connection = server.connect()
        answer = connection.request("GET", target)
        assert answer.status == 200
        assert int(answer.body.removeprefix(b"before ")) in serving
        # Whatever came of the child would stand before this.
        answer = connection.request("GET", "/pid", "Connection: close")
        assert int(answer.body) in serving
        assert connection.at_end()
        assert {int(server.get("/pid").body) for _ in range(10)} <= serving
        group = server.process.pid
        server.stop()
        with pytest.raises(ProcessLookupError):
            os.killpg(group, 0)


@pytest.mark.threading_only
@pytest.mark.parametrize(
    ("how", "code"), [("exit", 0), ("number", 7), ("nothing", 0), ("text", 1), ("raise", 1)]
)
def test_a_child_ends_with_the_code_of_its_exit(mode: str, how: str, code: int) -> None:
    with Server(ROBUST, mode, tracebacks=True) as server:
        assert server.get(f"/fork?{how}").get("X-Child") == str(code)


def test_connection_ends_although_a_child_lives_on(mode: str) -> None:
    with Server(ROBUST, mode) as server:
        connection = server.connect()
        child = int(connection.request("GET", "/child").body)
        try:
            assert connection.request("GET", "/pid", "Connection: close").status == 200
            assert connection.at_end()
        finally:
            os.kill(child, signal.SIGKILL)


# Signals


@pytest.mark.parametrize("number", [1, 2])
def test_term_during_import(mode: str, number: int, folder: Path) -> None:
    (folder / "importing.py").write_text(IMPORTING)
    options = ("--workers", str(number))
    path = folder / "socket"
    more = (*mode_options(mode, options), *options)
    words = command("serve", "importing.py", "--bind", f"unix:{path}", *more)
    with Program(*words, cwd=folder) as program:
        program.wait_log("importing")
        assert path.exists()
        program.process.terminate()
        code = program.wait()
        text = program.log()
        assert code == 0, text
        assert text == "importing\n"
        assert not path.exists(), "the socket's file is left"


@pytest.mark.parametrize("number", ["1", "2"])
def test_forking_application_that_ends_at_import(number: str, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("import os\nos.write(2, b'importing\\n')\nos._exit(0)\n")
    options = ("--bind", "127.0.0.1:0", "--mode", "forking", "--workers", number)
    with Program(*command("serve", "ends.py", *options), cwd=tmp_path) as program:
        code = program.wait()
        text = program.log()
        assert code != 0, text
        assert text.count("importing\n") == 1, text
        assert not READY.search(text)


def test_interrupt_from_the_keyboard(mode: str, tmp_path: Path) -> None:
    """Ctrl-C reaches the workers twice: from the terminal, and from their supervisor."""
    with Server(GATE, mode, "--workers", "2", *PATIENT) as server:
        connection = enter(server, tmp_path / "gate")
        os.killpg(server.process.pid, signal.SIGINT)
        wait_for(lambda: refuses(server), "the closed port")
        (tmp_path / "gate").touch()
        assert connection.response().json() == "waited"
        assert server.wait() == 0, server.log()
        server.ended()


@pytest.mark.parametrize("number", ["1", "2"])
def test_port_is_closed_while_requests_are_in_hand(mode: str, number: str, tmp_path: Path) -> None:
    with Server(GATE, mode, "--workers", number, *PATIENT) as server:
        connection = enter(server, tmp_path / "gate")
        server.process.terminate()
        wait_for(lambda: refuses(server), "the closed port")
        (tmp_path / "gate").touch()
        assert connection.response().json() == "waited"
        assert server.wait() == 0, server.log()
        server.ended()


@pytest.mark.parametrize("number", ["1", "2"])
def test_second_term_ends_it_at_once(mode: str, number: str, tmp_path: Path) -> None:
    with Server(GATE, mode, "--workers", number, *PATIENT) as server:
        connection = enter(server, tmp_path / "never")
        server.process.terminate()
        wait_for(lambda: refuses(server), "the closed port")
        server.process.terminate()
        assert server.wait() == 0, server.log()
        assert f"was killed: request 1 GET /wait?{tmp_path / 'never'}\n" in server.log()
        with pytest.raises((Closed, BadResponse)):
            connection.response()
        server.ended()


@pytest.mark.parametrize("mode", ["single", "threading"])
def test_signal_handler_that_raises(mode: str) -> None:
    with Server(ROBUST, mode, tracebacks=True) as server:
        for times in range(1, 4):
            server.process.send_signal(signal.SIGUSR1)
            server.wait_log("usr1 came\n", times)
            lives(server)


#: A signal comes while the worker tells that it serves, and while it begins a thread.
EARLY = """
import os, signal, threading

told = []

def on_usr1(number, frame):
    raise RuntimeError(f"in {told[-1]}")

def interrupted(function, name, at):
    def call(*arguments):
        result = function(*arguments)
        if at(*arguments) and name not in told:
            told.append(name)
            signal.raise_signal(signal.SIGUSR1)
        return result
    return call

signal.signal(signal.SIGUSR1, on_usr1)
os.write = interrupted(os.write, "write", lambda fd, octets: octets == b"+")
threading.Thread.start = interrupted(threading.Thread.start, "start", lambda thread: True)

def application(environ, start_response):
    threads = [thread.name for thread in threading.enumerate() if thread.name[:8] == "poorhttp"]
    start_response("200 OK", [])
    return [f"{os.getpid()} {told} {sorted(threads)}".encode()]
"""


@pytest.mark.parametrize(
    ("mode", "told", "threads"),
    [
        ("single", ["write"], []),
        ("threading", ["write", "start"], ["poorhttp-1", "poorhttp-2", "poorhttp-3"]),
        ("gevent", ["write"], []),
    ],
)
def test_signal_handler_that_raises_early(
    mode: str, told: list[str], threads: list[str], tmp_path: Path
) -> None:
    (tmp_path / "early.py").write_text(EARLY)
    options = ("--threads", "3") if mode == "threading" else ()
    with Server("early.py", mode, *options, tracebacks=True, cwd=tmp_path) as server:
        (worker,) = children(server.process.pid)
        every = f"{worker} {told} {threads}"
        wait_for(lambda: server.get("/").body.decode() == every, "all threads")
        for name in told:
            assert server.log().count(f"    RuntimeError: in {name}\n") == 1


#: Whoever loads this once is deaf.
DEAF = """
import sys, time
try:
    sys.stderr.write("importing\\n")
    time.sleep(3600)
except SystemExit:
    time.sleep(3600)
"""


def test_a_worker_that_swallows_the_signal_while_it_loads(tmp_path: Path) -> None:
    (tmp_path / "deaf.py").write_text(DEAF)
    options = ("--bind", "127.0.0.1:0", *PATIENT)
    with Program(*command("serve", "deaf.py", *options), cwd=tmp_path) as program:
        program.wait_log("importing")
        program.process.terminate()
        assert program.wait() == 0


#: The main process is told to end where what a handler raises is lost.
LOST = """
import signal, sys
from poorhttp.cli import main
from poorhttp.supervisor import supervisor

class Lost:
    def __del__(self):
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            print("what a handler raises here is lost", sys.exc_info()[0].__name__)

class Generations(supervisor.Generations):
    def __init__(self, *arguments):
        Lost()
        super().__init__(*arguments)

supervisor.Generations = Generations
sys.exit(main())
"""


def test_a_signal_that_is_lost_while_the_main_process_begins() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOST, "serve", GATE, "--bind", "127.0.0.1:0", *PATIENT],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout == "what a handler raises here is lost Stopped\n"
    assert done.stderr == ""


PROGRAM = """
import json, signal, time
import poorhttp

def mine(number, frame):
    print("mine", number)

def application(environ, start_response):
    start_response("200 OK", [])
    return [b"hello"]

numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGALRM, signal.SIGCHLD]
for number in numbers:
    signal.signal(number, mine)
poorhttp.serve(application, bind="127.0.0.1:0", mode={mode!r}, graceful_timeout=0.4)
changed = [number.name for number in numbers if signal.getsignal(number) is not mine]
timer = signal.getitimer(signal.ITIMER_REAL)
wakeup = signal.set_wakeup_fd(-1)
blocked = [number.name for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
time.sleep(0.7)
print(json.dumps([changed, timer, wakeup, blocked]))
"""


def test_program_lives_on_after_serve(mode: str) -> None:
    """serve() leaves neither its alarm nor its signal handlers behind."""
    with LibraryProgram(PROGRAM.format(mode=mode)) as program:
        changed, timer, wakeup, blocked = json.loads(program.terminate())
        assert changed == []
        assert timer == [0, 0]
        assert wakeup == -1
        assert blocked == []


STOPPED_AT_A_FUNERAL = """
import os, signal, poorhttp

def waitpid(pid, options, real=os.waitpid, supervisor=os.getpid()):
    found = real(pid, options)
    if found[0] and os.getpid() == supervisor:
        os.kill(supervisor, signal.SIGTERM)
    return found

def application(environ, start_response):
    if environ["PATH_INFO"] == "/die":
        os._exit(1)
    start_response("200 OK", [])
    return [b"hello"]

os.waitpid = waitpid
poorhttp.serve(application, bind="127.0.0.1:0", mode="single", workers=2)
print("served")
"""


def test_stop_while_a_worker_is_buried() -> None:
    """The signal comes between the end of a worker and the moment when it is off the list."""
    with LibraryProgram(STOPPED_AT_A_FUNERAL) as program:
        with pytest.raises(OSError, match=r"closed|reset"):
            urllib.request.urlopen(program.url + "/die", timeout=HANG)
        assert program.end() == "served\n"


# Sockets


@pytest.mark.parametrize("mode", ["single", "threading"])
def test_closed_server_frees_its_port(mode: str) -> None:
    """Although the application has kept what belongs to a request."""
    kept = []

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        kept.append(start_response)
        start_response("200 OK", [])
        return [b"kept"]

    with poorhttp.Server(application, mode=mode) as server:
        with urllib.request.urlopen(server.url, timeout=HANG) as answer:
            assert answer.read() == b"kept"
        host, _, port = server.url.removeprefix("http://").partition(":")
    assert kept
    with pytest.raises(ConnectionRefusedError):
        Connection((host, int(port)))


@pytest.mark.threading_only
def test_relative_unix_path(mode: str, folder: Path) -> None:
    path = folder / "socket"
    with Server(ROBUST, mode, bind=("unix:socket",), cwd=folder) as server:
        with Connection(str(path)) as connection:
            assert connection.request("GET", "/chdir").status == 200
        server.stop()
    assert not path.exists()


@pytest.mark.threading_only
def test_regular_file_in_the_place_of_a_socket(mode: str, folder: Path) -> None:
    path = folder / "precious"
    path.write_text("data")
    words = command("serve", ROBUST, "--bind", f"unix:{path}", *mode_options(mode))
    with Program(*words, cwd=folder) as program:
        assert program.wait() == 5, program.log()
        assert re.fullmatch(r"poorhttp: .*/precious: .* no socket.*\n", program.log())
    assert path.read_text() == "data"


# Logs


@pytest.mark.threading_only
def test_access_log_of_an_aborted_request(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    with Server(ROBUST, mode, "--access-log", str(path), tracebacks=True) as server:
        with pytest.raises(BadResponse):
            server.get("/wrong_chunk")
        wait_for(lambda: "/wrong_chunk" in path.read_text(), "the line in the access log")


def is_connected(server: Server, port: int) -> bool:
    """Whether the server's end of the connection to our `port` is open, as the kernel sees it."""
    ends = f" 0100007F:{server.port:04X} 0100007F:{port:04X} 01 "
    return ends in Path("/proc/net/tcp").read_text()


def test_client_that_left_before_a_file(mode: str, tmp_path: Path) -> None:
    with Server(ROBUST, mode, "--log-level", "info") as server:
        connection = enter(server, tmp_path / "gate", "/gated_file")
        port = connection.socket.getsockname()[1]
        connection.reset()
        wait_for(lambda: not is_connected(server, port), "the reset at the server")
        (tmp_path / "gate").touch()
        wait_for(lambda: re.search("info.* left ", server.log()), "that the client left")
        assert "error" not in server.log()
