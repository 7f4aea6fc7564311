"""Signals to stop at any moment: while it starts, loads, serves, or ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.each_value import DIFFERENT, each_value
from tests.support.library_program import LibraryProgram
from tests.testkit.client import HANG, BadResponse, Closed, Connection
from tests.testkit.process import children
from tests.testkit.server import (
    READY,
    ROOT,
    Program,
    Server,
    command,
    mode_options,
    run,
    wait_for,
)

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


def refuses(server: Server) -> bool:
    """Whether nobody listens any more."""
    try:
        with Connection(("127.0.0.1", server.port)):
            pass
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        # It was about to be accepted when the port was closed.
        pass
    return False


@pytest.mark.parametrize(("mode", "number"), each_value(DIFFERENT, [1, 2]), indirect=["mode"])
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


@contextmanager
def in_flight(server: Server, gate: Path) -> Iterator[None]:
    """A request, which is answered although the server is told to stop; then the server ends."""
    connection = server.enter(gate)
    yield
    wait_for(lambda: refuses(server), "the closed port")
    gate.touch()
    assert connection.response().json() == "waited"
    assert server.wait() == 0, server.log()
    server.ended()


@pytest.mark.each_mode
def test_interrupt_from_the_keyboard(mode: str, tmp_path: Path) -> None:
    """Ctrl-C reaches the workers twice: from the terminal, and from their supervisor."""
    options = ("--workers", "2", *PATIENT)
    with Server(GATE, mode, *options) as server, in_flight(server, tmp_path / "gate"):
        os.killpg(server.process.pid, signal.SIGINT)


@pytest.mark.parametrize("number", ["1", "2"])
def test_port_is_closed_while_requests_are_in_flight(
    mode: str, number: str, tmp_path: Path
) -> None:
    options = ("--workers", number, *PATIENT)
    with Server(GATE, mode, *options) as server, in_flight(server, tmp_path / "gate"):
        server.process.terminate()


@pytest.mark.parametrize(("mode", "number"), each_value(DIFFERENT, ["1", "2"]), indirect=["mode"])
def test_second_term_ends_it_at_once(mode: str, number: str, tmp_path: Path) -> None:
    with Server(GATE, mode, "--workers", number, *PATIENT) as server:
        connection = server.enter(tmp_path / "never")
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
            assert server.get("/pid").status == 200
            assert "is replaced" not in server.log()


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
    bind = ("--bind", "127.0.0.1:0")
    done = run(sys.executable, "-c", LOST, "serve", GATE, *bind, *PATIENT)
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


@pytest.mark.each_mode
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
