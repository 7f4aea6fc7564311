"""Sinks of logs that a plug-in adds (`poorhttp.log_sinks`): their lines, and what goes wrong."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.plug_in import install
from tests.testkit.server import ROOT, Server, command, run, wait_for

#: Sends the lines of both logs to a socket, `ship:PATH`; the others are wrong.
SHIPPING = """\
import socket
import threading
from contextlib import suppress

from poorhttp._core import Sink
from poorhttp.config.options.option import Option
from poorhttp.config.parsers import or_off
from poorhttp.logs.sink import LogSink

class Ship(LogSink):
    logs = ("access_log", "error_log")
    format = "shipped %s %U"

    def open(self, settings, option):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(settings.value(option).partition(":")[2])
        return connection.detach()

class Main(Ship):
    needs_main = True

class Closed(LogSink):
    def open(self, settings, option):
        return 12345

class Options:
    python_log = Option(or_off(str), "off", "Where lines go.", metavar="FILE")

class Relay:
    def __init__(self, path, label):
        self.path, self.label = path, label
        self.messages, self.sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.lines, self.requests = socket.socketpair()

    def sink(self):
        return Sink.records(self.sender.fileno())

    def access_sink(self):
        return Sink.lines(self.requests.fileno())

    def start(self, *, in_greenlet):
        threading.Thread(target=self.forward_requests, daemon=True).start()

    def forward_requests(self):
        while data := self.lines.recv(65536):
            self.write("request", data)

    def forward(self):
        self.messages.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                self.write("message", self.messages.recv(65536))

    def write(self, kind, data):
        with open(self.path, "a") as file:
            print(kind, "of", self.label, data, file=file)

    def reopen(self):
        self.write("reopen", b"")

    def close(self):
        self.forward()

    def close_inherited(self):
        self.messages.close()

class Python(LogSink):
    logs = ()
    relays = True

    def relay(self, settings, folder, label, *, configure):
        if settings.value("python_log") == "broken":
            raise RuntimeError("no relay")
        return Relay(settings.value("python_log"), label)

ship, main, closed, wrong, python_log = Ship(), Main(), Closed(), Ship, Python()
"""
NAMES = ("ship", "main", "closed", "wrong", "python_log")
POINTS = "\n".join(f"{name} = shipping:{name}" for name in NAMES)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment with the plug-in, which `plugins` names."""
    site = tmp_path / "site"
    site.mkdir()
    points = {"log_sinks": POINTS, "options": "shipping = shipping:Options"}
    install(site, "shipping", points, {"shipping": SHIPPING})
    (tmp_path / "app.py").write_text(
        "def application(environ, start_response):\n"
        "    environ['wsgi.errors'].write('a complaint\\n')\n"
        "    start_response('200 OK', [])\n"
        "    return [b'']\n"
    )
    paths = os.pathsep.join([str(ROOT), str(site)])
    return {"PYTHONPATH": paths, "POORHTTP_PLUGINS": "shipping"}


def test_lines_of_both_logs(env: dict[str, str], tmp_path: Path) -> None:
    path = f"ship:{tmp_path}/socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path}/socket")
        listener.listen()
        listener.setblocking(False)
        options = ("--access-log", path, "--error-log", path)
        with Server("app.py", "threading", *options, cwd=tmp_path, env=env) as server:
            assert server.get("/tea").status == 200
            connections, received = [], b""

            def has_come() -> bool:
                nonlocal received
                with suppress(BlockingIOError):
                    connections.append(listener.accept()[0])
                    connections[-1].setblocking(False)
                for connection in connections:
                    with suppress(BlockingIOError):
                        received += connection.recv(65536)
                return b"shipped 200 /tea\n" in received and b"a complaint\n" in received

            wait_for(has_come, "the lines at the socket")
        for connection in connections:
            connection.close()


def test_a_sink_of_an_option_gets_both_logs_in_python(env: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "lines"
    options = ("--python-log", str(file), "--access-log", "-")
    with Server("app.py", "threading", *options, cwd=tmp_path, env=env) as server:
        assert server.get("/tea").status == 200
        server.process.send_signal(signal.SIGUSR1)
        wanted = ["request of worker 1 b", "GET /tea", "message of worker 1 b", "a complaint"]
        wanted.append("reopen of worker 1")
        wait_for(lambda: all(each in file.read_text() for each in wanted), f"{wanted}")


NAMED = "plug-in {} of shipping (poorhttp.log_sinks)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--access-log=ship:missing",
            f"--access-log: {NAMED.format('ship')}: open: FileNotFoundError:",
        ),
        ("--access-log=closed", f"--access-log: {NAMED.format('closed')}: open: OSError:"),
        (
            "--access-log=wrong",
            f"{NAMED.format('wrong')} is no object of poorhttp.logs.sink.LogSink, but",
        ),
        (
            "--access-log=main:x --supervisor=off",
            "without a supervisor one process serves, which is at odds with access_log = main:x",
        ),
        (
            "--python-log=broken",
            f"--python-log: {NAMED.format('python_log')}: relay: RuntimeError: no relay",
        ),
    ],
    ids=["raises", "no-descriptor", "no-sink", "needs-main", "no-relay"],
)
def test_what_is_wrong_is_named(
    options: str, message: str, env: dict[str, str], tmp_path: Path
) -> None:
    words = command("serve", "app.py", "--bind", "127.0.0.1:0", *options.split())
    done = run(*words, cwd=tmp_path, env=env)
    assert done.returncode == 3
    assert message in done.stderr


def test_a_log_that_the_sink_does_not_take_is_a_file(env: dict[str, str], tmp_path: Path) -> None:
    options = ("--error-log", "closed")
    with Server("app.py", "threading", *options, cwd=tmp_path, env=env) as server:
        server.get("/")
        wait_for(lambda: "a complaint" in (tmp_path / "closed").read_text(), "the line")
