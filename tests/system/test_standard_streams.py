"""A server that is started without standard input, output or error, and one that is process 1."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.each_value import each_value
from tests.testkit.client import HANG
from tests.testkit.process import children
from tests.testkit.server import Server, environment, run, wait_for

APP = """
import os

def application(environ, start_response):
    for fd in range(3):
        try:
            os.write(fd, b"stray")
        except OSError:
            pass
    found = [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)]
    program = os.popen("readlink /proc/self/fd/0 /proc/self/fd/2").read()
    body = "\\n".join([*found, program]).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""

#: Closes descriptors, and executes the command behind them.
CLOSING = (
    "import os, sys\n"
    "for fd in sys.argv[1]:\n"
    "    os.close(int(fd))\n"
    "os.execv(sys.argv[2], sys.argv[2:])"
)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The application, which writes to the standard streams."""
    path = tmp_path_factory.mktemp("app") / "app.py"
    path.write_text(APP)
    return f"{path}:application"


# The ready line is read from standard error, so the server needs that here.
@pytest.mark.parametrize(
    ("fds", "options"),
    each_value(["0", "1", "01"], [(), ("--supervisor", "off"), ("--preload", "on")]),
)
def test_nobody_gets_their_numbers(mode: str, app: str, fds: str, options: tuple[str, ...]) -> None:
    launcher = (sys.executable, "-c", CLOSING, fds)
    with Server(app, mode, *options, launcher=launcher) as server:
        for _ in range(2):
            answer = server.get("/")
            assert answer.status == 200
            for fd in fds:
                assert answer.body.decode().split("\n")[int(fd)] == os.devnull


@pytest.mark.parametrize(("fds", "verb"), each_value(["2", "02", "12", "012"], ["serve", "dev"]))
def test_a_server_without_standard_error(app: str, fds: str, verb: str, tmp_path: Path) -> None:
    """It says that it is ready in its PID file only."""
    path, pidfile = tmp_path / "socket", tmp_path / "pid"
    words = [sys.executable, "-m", "poorhttp", verb, app, "--bind", f"unix:{path}"]
    words += ["--pidfile", str(pidfile)] if verb == "serve" else ["--open", "off"]
    code = f"import os; os.chdir({os.getcwd()!r}); {CLOSING}"
    process = subprocess.Popen([sys.executable, "-c", code, fds, *words])
    try:
        ask = ("curl", "-s", "--unix-socket", str(path), "http://localhost/")
        wait_for(lambda: run(*ask).stdout or process.poll() is not None, "an answer")
        for fd in fds:
            assert run(*ask).stdout.split("\n")[int(fd)] == os.devnull
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG) == 0
    finally:
        process.kill()
        process.wait(HANG)


@pytest.mark.parametrize("call", ["poorhttp.serve(app, '127.0.0.1:0', 'single')", "Server"])
def test_programs_with_a_server_have_them(call: str) -> None:
    if call == "Server":
        call = "server = poorhttp.Server(app); os.kill(os.getpid(), 15)"
    code = (
        "import os, signal, sys, threading, time\n"
        "report = os.dup(1)\n"
        "for fd in range(3):\n"
        "    os.close(fd)\n"
        "sys.stdin = sys.stdout = sys.stderr = None\n"
        "import poorhttp\n"
        "def app(environ, start):\n"
        "    return []\n"
        "def stop(number, frame):\n"
        "    pass\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "def end():\n"
        "    while not time.sleep(0.5):\n"
        "        os.kill(os.getpid(), 15)\n"
        # The first may come before the server handles it.
        "threading.Thread(target=end, daemon=True).start()\n"
        f"{call}\n"
        "found = [os.readlink(f'/proc/self/fd/{fd}') for fd in range(3)]\n"
        "os.write(report, repr(found).encode())\n"
    )
    assert run(sys.executable, "-c", code).stdout == repr([os.devnull] * 3)


ORPHANS = """
import contextlib, os

def application(environ, start_response):
    if environ["PATH_INFO"] == "/orphan":
        if os.fork() == 0:
            os.fork()
            os._exit(0)
        os.wait()
    states = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        # It may have ended meanwhile.
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
            states.append(file.read().rpartition(")")[2].split()[0])
    start_response("200 OK", [])
    return ["".join(states).encode()]
"""


def as_process_1() -> tuple[str, ...]:
    """A launcher that starts a program as process 1."""
    unshare = shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None:
        pytest.skip("only root can have a process with the number 1")
    return (unshare, "--pid", "--fork", "--mount-proc", "--kill-child")


@pytest.mark.parametrize("options", [("--supervisor", "off"), ()], ids=" ".join)
def test_process_1_leaves_no_zombies(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(ORPHANS)
    app = f"{tmp_path}/app.py:application"
    with Server(app, "threading", *options, launcher=as_process_1()) as server:
        for _ in range(5):
            assert server.get("/orphan").status == 200
        wait_for(lambda: b"Z" not in server.get("/").body, "no zombies")
        (init,) = children(server.process.pid)
        os.kill(init, signal.SIGTERM)
        assert server.wait() == 0
        server.ended()


WAITING = """
import atexit, signal, sys, threading

go = threading.Event()
atexit.register(lambda: print("exit handlers have run", flush=True))
signal.signal(signal.SIGCONT, lambda number, frame: go.set())

def application(environ, start_response):
    print("begun", flush=True)
    go.wait()
    start_response("200 OK", [])
    return []
"""


def test_ctrl_c_reaches_the_child_of_process_1_once(tmp_path: Path) -> None:
    """A second signal would end it with its request in flight, and without its exit handlers."""
    (tmp_path / "app.py").write_text(WAITING)
    words = (*as_process_1(), sys.executable, "-m", "poorhttp", "serve", "app:application")
    words += ("--bind", f"unix:{tmp_path}/socket", "--supervisor", "off")
    terminal, theirs = pty.openpty()
    shown = b""
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
        socket.socket(socket.AF_UNIX) as client,
    ):
        manager.bind(f"{tmp_path}/manager")
        process = subprocess.Popen(
            ["setsid", "--ctty", *words],
            cwd=tmp_path,
            env=environment({"NOTIFY_SOCKET": f"{tmp_path}/manager"}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        try:
            while b"READY=1" not in manager.recv(4096):
                pass
            client.connect(f"{tmp_path}/socket")
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            while b"begun" not in shown:
                shown += os.read(terminal, 4096)
            # The server gets it first.
            (init,) = children(process.pid)
            os.kill(init, signal.SIGSTOP)
            os.write(terminal, b"\x03")
            while b"STOPPING=1" not in manager.recv(4096):
                pass
            # Process 1 goes on with the signal of Ctrl-C, and passes this one on after it.
            os.kill(init, signal.SIGCONT)
            assert process.wait(HANG) == 0
        finally:
            process.kill()
    with contextlib.suppress(OSError):
        while more := os.read(terminal, 4096):
            shown += more
    os.close(terminal)
    assert b"exit handlers have run" in shown
    assert b"in flight" not in shown
