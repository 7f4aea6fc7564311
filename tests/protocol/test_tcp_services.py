"""TCP services: handlers of raw connections and their orderly end, in every mode.

What a client sees is what counts, so the clients are sockets.
"""

from __future__ import annotations

import ast
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from poorhttp.errors import ApplicationError
from poorhttp.targets import load
from tests.conftest import Serve
from tests.support.each_value import DIFFERENT, each_value
from tests.support.services import Tree
from tests.testkit.client import HANG, Connection, receive, receive_until
from tests.testkit.process import children
from tests.testkit.server import Server, wait_for

ALONE = True

PLAIN = "tcp:tests/apps/plain.py:handler"
ECHO = "tcp:apps/services/echo.py:handler"


def begun(server: Server, way: str) -> Connection:
    """A connection whose handler has been told what to do."""
    connection = server.connect()
    connection.send(f"{way}\n".encode())
    return connection


def is_reset(connection: Connection) -> bool:
    """Whether the connection ends by a reset, and not in good order."""
    connection.rest()
    return connection.was_reset


@pytest.fixture
def plain(serve: Serve) -> Server:
    """A server of handlers that do what they are told, in one process."""
    return serve(PLAIN, "--workers", "1", tracebacks=True)


def finish(connection: Connection) -> None:
    """Say that nothing more will be sent."""
    connection.socket.shutdown(socket.SHUT_WR)


#: Python 3.11 cannot make two syntax trees at the same time.
EVALUATING = threading.Lock()


def told(server: Server) -> tuple[int, str, str, int, bool, Any]:
    """What a handler says of itself."""
    with begun(server, "tell") as connection:
        text = connection.rest().decode()
    with EVALUATING:
        said: tuple[int, str, str, int, bool, Any] = ast.literal_eval(text)
    return said


def test_the_address_is_as_accept_has_it(mode: str, folder: Path) -> None:
    unix = f"unix:{folder}/socket"
    with Server(PLAIN, mode, bind=("127.0.0.1:0", "[::1]:0", unix)) as server:
        ports = r"tcp://127\.0\.0\.1:(\d+), tcp://\[::1\]:(\d+), " + re.escape(unix)
        found = re.fullmatch(ports, server.urls)
        assert found, server.urls
        for where in (("127.0.0.1", int(found[1])), ("::1", int(found[2])), f"{folder}/socket"):
            with Connection(where) as client:
                client.send(b"tell\n")
                said = ast.literal_eval(client.rest().decode())
                _, _, module, family, blocking, address = said
                assert (family, blocking) == (client.socket.family, True)
                assert address == client.socket.getsockname()
                assert module.startswith("gevent.") == (mode == "gevent")


# What goes wrong


@pytest.mark.each_mode
def test_in_threads_of_mode_asyncio() -> None:
    """An event loop is of no use to it, but the mode may be that of all services."""
    with Server(ECHO, "asyncio", "--threads", "2") as server:
        connections = [server.connect() for _ in range(2)]
        for connection in connections:
            connection.send(b"echo")
            assert receive_until(connection, b"echo") == b"echo"


def test_a_handler_that_fails(plain: Server) -> None:
    with begun(plain, "fault") as connection:
        host, port = connection.socket.getsockname()
        assert is_reset(connection)
    found = (
        rf"(?s)error: request \d+ of {host}:{port}: the handler failed: RuntimeError"
        r".*Traceback.*plain\.py.*RuntimeError: the answer is lost"
    )
    wait_for(lambda: re.search(found, plain.log()), found)
    for way, why in [
        ("leave", "SystemExit: 7"),
        ("complain", "ConnectionResetError: a database has gone"),
        ("elsewhere", "TimeoutError: a database takes its time"),
        ("no such way", "KeyError: 'no such way'"),
    ]:
        with begun(plain, way) as connection:
            assert is_reset(connection)
        plain.wait_log(why)
    assert told(plain)


@pytest.mark.each_mode
def test_a_client_that_leaves_is_no_fault(plain: Server) -> None:
    before = plain.log_size()
    connection = begun(plain, "large")
    receive(connection, 1)
    port = connection.socket.getsockname()[1]
    connection.reset()
    plain.wait_log(f"of 127.0.0.1:{port}: the client left before its handler ended")
    with begun(plain, "late") as connection:
        port = connection.socket.getsockname()[1]
        assert is_reset(connection)
    plain.wait_log(f"of 127.0.0.1:{port}: the handler has waited too long for its client")
    with plain.connect() as connection:
        finish(connection)
        assert connection.rest() == b""
    assert "Traceback" not in plain.log(before)


def test_what_a_handler_does_with_its_socket(plain: Server) -> None:
    """Whether it keeps it or leaves it in another state, the connection has ended."""
    with begun(plain, "keep") as connection:
        assert connection.rest() == b"kept"
    with begun(plain, "kept") as connection:
        assert connection.rest() == b"-1 BrokenPipeError"
    with begun(plain, "unblocked") as connection:
        connection.send(b"what nobody reads")
        assert connection.rest() == b"unblocked"
    assert told(plain)


@pytest.mark.each_mode
def test_a_child_that_comes_back_and_a_worker_that_dies(mode: str) -> None:
    """The child is none of the server, and ends; of the worker is told what it had in hand."""
    with Server(PLAIN, mode, "--workers", "1", tracebacks=True) as server:
        with begun(server, "fork") as connection:
            assert connection.rest() == b"parent"
        server.wait_log("a process forked by the application came back to the server")
        with begun(server, "die") as connection:
            port = connection.socket.getsockname()[1]
            connection.rest()
        server.wait_log(f"it had in flight: request 2 of 127.0.0.1:{port}")
        assert told(server)


@pytest.mark.each_mode
def test_who_takes_too_long(mode: str, tmp_path: Path) -> None:
    """Is interrupted, also in the kernel, where exceptions do not reach a thread; or cut off."""
    options = ("--request-timeout", "0.6", "--workers", "1")
    with Server(PLAIN, mode, *options, env={"NOTES": str(tmp_path)}) as server:
        pid = told(server)[0]
        for way in ("wait", "compute"):
            before = server.log_size()
            with begun(server, way) as connection:
                port = connection.socket.getsockname()[1]
                assert is_reset(connection)
            server.wait_log(
                f"of 127.0.0.1:{port}: the handler was interrupted, its connection was reset"
            )
            found = (
                rf"request \d+ of 127.0.0.1:{port}: after [\d.]+ s \(request_timeout\) the "
                rf"application is in \S+plain.py:\d+ in {way}\n"
            )
            wait_for(lambda: re.search(found, server.log()), found)  # noqa: B023
            stack = server.log(before).split("which runs it")[1].split("Thread")[0]
            assert "modes/" not in stack
        assert "cannot be interrupted" not in server.log()
        assert told(server)[0] == pid
        with begun(server, "swallow") as connection:
            port = connection.socket.getsockname()[1]
            assert is_reset(connection)
        server.wait_log(f"of 127.0.0.1:{port}: after ")
        server.wait_log("the application cannot be interrupted: its connection was reset")
        server.kill()


# The end, and what follows


@pytest.mark.parametrize(
    ("mode", "number"), each_value(DIFFERENT, [signal.SIGTERM, signal.SIGINT]), indirect=["mode"]
)
def test_handlers_in_hand_may_end(number: signal.Signals, mode: str) -> None:
    """TERM: as long as they like, here; INT ends their connections."""
    with Server(ECHO, mode) as server:
        data = bytes(range(256)) * 20_000
        with server.connect() as connection, ThreadPoolExecutor(1) as sender:
            sent = sender.submit(connection.send, data)
            sent.add_done_callback(lambda _: finish(connection))
            assert connection.rest() == data
            sent.result()
        connection = server.connect()
        connection.send(b"one")
        assert receive(connection, 3) == b"one"
        server.process.send_signal(number)
        if number == signal.SIGTERM:
            wait_for(server.is_refusing, "the end of listening")
            connection.send(b"two")
            assert receive(connection, 3) == b"two"
            finish(connection)
        assert connection.rest() == b""
        assert server.wait() == 0
        server.ended()


@pytest.mark.parametrize(
    ("mode", "supervisor"), each_value(DIFFERENT, ["on", "off"]), indirect=["mode"]
)
def test_handlers_that_wait_for_ever_are_ended(supervisor: str, mode: str, tmp_path: Path) -> None:
    """What they wait for ends when graceful_timeout is over, and they can still do something."""
    options = ("--graceful-timeout", "0.3", "--supervisor", supervisor, "--workers", "1")
    with Server(PLAIN, mode, *options, env={"NOTES": str(tmp_path)}) as server:
        for number in [*[signal.SIGHUP] * (supervisor == "on"), signal.SIGTERM]:
            workers = children(server.process.pid)
            connection = begun(server, "wait")
            assert receive(connection, 7) == b"waiting"
            port = connection.socket.getsockname()[1]
            server.process.send_signal(number)
            assert not is_reset(connection)
            if number == signal.SIGTERM:
                assert server.wait() == 0
            else:
                server.wait_log("reloaded: the new version serves")
                wait_for(
                    lambda: not {*workers} & {*children(server.process.pid)},  # noqa: B023
                    "the end of the old worker",
                )
            assert (tmp_path / str(port)).read_text() == "ended in good order"
        # With `on` it is killed a second later, which a busy machine may take for the rest.
        assert supervisor == "on" or "was killed" not in server.log()
        server.wait_log("graceful_timeout is over; 1 connection was shut down")
        server.ended()


@contextmanager
def talking(server: Server) -> Iterator[set[str]]:
    """Clients that connect again and again; the versions that they have heard of."""
    versions, over = set[str](), threading.Event()

    def talk() -> None:
        while not over.wait(0.005):
            versions.add(told(server)[1])

    with ThreadPoolExecutor(3) as clients:
        talks = [clients.submit(talk) for _ in range(3)]
        try:
            yield versions
        finally:
            over.set()
    for each in talks:
        each.result()


@pytest.mark.parametrize(
    ("mode", "preload"), each_value(DIFFERENT, ["off", "on"]), indirect=["mode"]
)
def test_no_connection_is_lost_by_reloads(preload: str, mode: str, tmp_path: Path) -> None:
    file = tmp_path / "version"
    file.write_text("1")
    env = {"VERSION_FILE": str(file)}
    with Server(PLAIN, mode, "--preload", preload, env=env) as server, talking(server) as versions:
        file.write_text("2")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "2" in versions, "a word of version 2")
        server.process.send_signal(signal.SIGTTIN)


def test_an_upgrade(mode: str, tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    with Server(PLAIN, mode, "--pidfile", str(pidfile)) as server:
        with talking(server):
            before = server.process.pid
            server.process.send_signal(signal.SIGUSR2)
            wait_for(lambda: pidfile.exists() and pidfile.read_text().strip() != str(before), "it")
            assert server.wait() == 0
            told(server)
        os.kill(int(pidfile.read_text()), signal.SIGTERM)
        wait_for(server.is_refusing, "the end of the successor")
        server.ended()


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("tcp:", "names no handler: say tcp:package.module:HANDLER"),
        ("tcp:apps/services/echo.py", "names no handler: say tcp:apps/services/echo.py:HANDLER"),
        ("tcp:apps/services/echo.py:handle", 'has no "handle"; did you mean "handler"'),
        ("tcp:apps/services/ecco.py:handler", 'did you mean "echo.py"'),
        ("tcp:asyncio:sleep", "is a coroutine"),
        ("tcp:bisect:insort.__name__", "cannot be called"),
        ("tcp:this.py:handler", "there is no file this.py"),
        ("tcp:shlex:quote", "does not take what a handler gets: socket and address"),
    ],
)
def test_handlers_that_cannot_be(target: str, complaint: str) -> None:
    with pytest.raises(ApplicationError, match=re.escape(complaint)):
        load(target)


def test_the_three_injectors(tmp_path: Path) -> None:
    """The configuration as it is, but for the ports; it fires at this machine only."""
    text = Path("apps/services/injectors.ini").read_text()
    with Tree(tmp_path, re.sub(r"bind = (\S+):\d+", r"bind = \1:0", text)) as tree:
        for number, line, answer in [
            (1, f"http://127.0.0.1:{tree.ports['web']}/index 20 random5", "errors   0\n"),
            (2, "http://192.0.2.1/", "only 127.0.0.1, ::1, localhost may be fired at"),
            (3, "http://127.0.0.1@192.0.2.1/", "only 127.0.0.1, ::1, localhost may be fired at"),
        ]:
            with Connection(("127.0.0.1", tree.ports[f"injector{number}"])) as connection:
                connection.send(f"{line}\n".encode())
                assert answer in connection.rest().decode()
        tree.process.terminate()
        assert tree.process.wait(HANG) == 0
