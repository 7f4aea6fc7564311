"""TCP services: handlers of raw connections and their orderly end, in every mode.

What a client sees is what counts, so the clients are sockets.
"""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from poorhttp.errors import ApplicationError
from poorhttp.targets import load
from tests.apps.plain import LARGE
from tests.conftest import Serve
from tests.support.each_value import DIFFERENT, each_value
from tests.support.forked_command import run_command
from tests.support.services import Tree
from tests.testkit.client import HANG, Connection, receive
from tests.testkit.process import children
from tests.testkit.server import AT_ONCE, Server, join, wait_for

PLAIN = "tcp:tests/apps/plain.py:handler"
ECHO = "tcp:apps/services/echo.py:handler"
DAYTIME = "tcp:apps/services/daytime.py:handler"
INJECTOR = "tcp:apps/services/injector.py:handler"


def begun(server: Server, way: str) -> Connection:
    """A connection whose handler has been told what to do."""
    connection = server.connect()
    connection.send(f"{way}\n".encode())
    return connection


def is_reset(connection: Connection) -> bool:
    """Whether the connection ends by a reset, and not in good order."""
    try:
        while connection.socket.recv(65536):
            pass
    except ConnectionResetError:
        return True
    return False


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


# What passes


@pytest.mark.each_mode
def test_what_comes_goes_back(serve: Serve) -> None:
    data = bytes(range(256)) * 20_000
    with serve(ECHO).connect() as connection:

        def send() -> None:
            connection.send(data)
            finish(connection)

        sender = threading.Thread(target=send)
        sender.start()
        assert connection.rest() == data
        join(sender)


@pytest.mark.each_mode
def test_many_at_once(serve: Serve, mode: str) -> None:
    """More than there are threads; where one is served at a time, the others wait their turn."""
    server = serve(ECHO)

    def talk(number: int) -> bytes:
        with server.connect() as connection:
            connection.send(b"%d\0" % number)
            finish(connection)
            return connection.rest()

    with ThreadPoolExecutor(50) as pool:
        assert list(pool.map(talk, range(200))) == [b"%d\0" % number for number in range(200)]


@pytest.mark.parametrize("mode", ["threading", "gevent"], indirect=True)
def test_talks_go_on_side_by_side(serve: Serve, mode: str) -> None:
    connections = [serve(ECHO).connect() for _ in range(AT_ONCE[mode])]
    for _ in range(3):
        for number, connection in enumerate(connections):
            connection.send(b"%3d" % number)
        answers = [receive(connection, 3) for connection in connections]
        assert answers == [b"%3d" % number for number in range(len(connections))]
    for connection in connections:
        connection.close()


def test_a_client_that_has_finished_is_answered(plain: Server) -> None:
    with begun(plain, "gather") as connection:
        connection.send(b"." * 100_000)
        finish(connection)
        assert connection.rest() == b"100000 octets"


@pytest.mark.each_mode
def test_what_was_sent_arrives(plain: Server) -> None:
    """Though the client goes on sending what nobody reads."""
    with begun(plain, "large") as connection:
        over = threading.Event()

        def go_on() -> None:
            with suppress(OSError):
                while not over.wait(0.0005):
                    connection.send(b"what nobody reads")

        sender = threading.Thread(target=go_on)
        sender.start()
        data = receive(connection, LARGE)
        assert connection.socket.recv(1) == b""
        over.set()
        join(sender)
        assert data == b"." * LARGE


# Who is connected


def test_the_address_is_as_accept_has_it(mode: str, folder: Path) -> None:
    unix = f"unix:{folder}/socket"
    with Server(PLAIN, mode, bind=("127.0.0.1:0", "[::1]:0", unix)) as server:
        ports = r"tcp://127\.0\.0\.1:(\d+), tcp://\[::1\]:(\d+), " + re.escape(unix)
        found = re.fullmatch(ports, server.urls)
        assert found, server.urls
        places: dict[socket.AddressFamily, Any] = {
            socket.AF_INET: ("127.0.0.1", int(found[1])),
            socket.AF_INET6: ("::1", int(found[2])),
            socket.AF_UNIX: f"{folder}/socket",
        }
        for family, where in places.items():
            with socket.socket(family) as client:
                client.settimeout(HANG)
                client.connect(where)
                client.sendall(b"tell\n")
                said = b"".join(iter(lambda: client.recv(4096), b"")).decode()
                _, _, module, told_family, blocking, address = ast.literal_eval(said)
                assert (told_family, blocking) == (family, True)
                assert address == client.getsockname()
                assert module.startswith("gevent.") == (mode == "gevent")


# What goes wrong


@pytest.mark.each_mode
def test_a_handler_that_fails(plain: Server) -> None:
    with begun(plain, "fault") as connection:
        host, port = connection.socket.getsockname()
        assert is_reset(connection)
    plain.wait_log("RuntimeError: the answer is lost")
    assert re.search(
        rf"(?s)error: request \d+ of {host}:{port}: the handler failed: RuntimeError"
        r".*Traceback.*plain\.py.*RuntimeError: the answer is lost",
        plain.log(),
    )
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


@pytest.mark.each_mode
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


# Limits


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
            assert re.search(
                rf"request \d+ of 127.0.0.1:{port}: after [\d.]+ s \(request_timeout\) the "
                rf"application is in \S+plain.py:\d+ in {way}\n",
                server.log(),
            )
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


@pytest.mark.each_mode
def test_too_many(mode: str) -> None:
    """Where one is served at a time, others are not let in meanwhile, but later."""
    most = 1 if mode in ("single", "forking") else 3
    with Server(ECHO, mode, "--max-connections", str(most), "--workers", "1") as server:
        first = [server.connect() for _ in range(most)]
        for connection in first:
            connection.send(b"in")
            assert receive(connection, 2) == b"in"
        if most > 1:
            for _ in range(2):
                assert not talks(server)
            complaint = "3 connections are open (max_connections): a new one is closed at once"
            server.wait_log(complaint)
            assert server.log().count(complaint) == 1
        first.pop().close()
        wait_for(lambda: talks(server), "room for others")
        for connection in first:
            connection.close()


def talks(server: Server) -> bool:
    """Whether an echo comes back."""
    with server.connect() as connection:
        try:
            connection.send(b"?")
            return connection.socket.recv(1) == b"?"
        except OSError:
            return False


@pytest.mark.each_mode
def test_max_requests_are_connections(mode: str) -> None:
    options = ("--max-requests", "5", "--max-requests-jitter", "0", "--workers", "1")
    with Server(PLAIN, mode, *options) as server:
        first = told(server)[0]
        for _ in range(4):
            told(server)
        server.wait_log(f"worker {first} is replaced: it has begun max_requests requests")
        # Until it has heard of that, the first may let in some more.
        wait_for(lambda: told(server)[0] != first, "a connection to its successor")


def test_the_logs(mode: str) -> None:
    form = "%h %r %s %b %L %k %D"
    slow = ("--slow-request", "0.02")
    with Server(ECHO, mode, *slow, "--access-log", "-", "--access-log-format", form) as server:
        with server.connect() as connection:
            connection.send(b"?")
            receive(connection, 1)
            time.sleep(0.05)
            port = connection.socket.getsockname()[1]
        server.wait_log(f"of 127.0.0.1:{port}: ")
        line = next(line for line in server.log().splitlines() if f":{port}: " in line)
        assert re.search(r": [\d.]+ s: [\d.]+ waiting for a thread, [\d.]+ in the app", line)
        for _ in range(2):
            with server.connect() as connection:
                finish(connection)
                connection.rest()
        wait_for(lambda: server.output().count("\n") == 3, "three lines")
        for line in server.output().splitlines():
            assert re.fullmatch(r"127\.0\.0\.1 - - - [123] 0 \d+", line)
    with Server(ECHO, mode, "--access-log", "-", "--access-log-format", "json") as server:
        with server.connect() as connection:
            finish(connection)
            connection.rest()
        wait_for(lambda: server.output().endswith("\n"), "a line")
        entry = json.loads(server.output())
        known = {"status": None, "size": None, "method": None, "request": 1}
        assert entry["remote_addr"] == "127.0.0.1"
        assert {key: entry[key] for key in known} == known


# The end, and what follows


@pytest.mark.parametrize(
    ("mode", "number"), each_value(DIFFERENT, [signal.SIGTERM, signal.SIGINT]), indirect=["mode"]
)
def test_handlers_in_hand_may_end(number: signal.Signals, mode: str) -> None:
    """TERM: as long as they like, here; INT ends their connections."""
    with Server(ECHO, mode) as server:
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
        assert "was killed" not in server.log()
        assert "graceful_timeout is over; 1 connection was shut down" in server.log()
        server.ended()


class Talk:
    """Clients that connect again and again, and have a word back each time."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.faults: list[str] = []
        self.versions: set[str] = set()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._talk) for _ in range(3)]

    def __enter__(self) -> Talk:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            join(thread)

    def _talk(self) -> None:
        while not self._over.wait(0.005):
            try:
                self.versions.add(told(self.server)[1])
            except (OSError, SyntaxError, ValueError) as error:
                self.faults.append(repr(error))

    def wait_version(self, version: str) -> None:
        wait_for(lambda: version in self.versions, f"a word of version {version}")


@pytest.mark.parametrize(
    ("mode", "preload"), each_value(DIFFERENT, ["off", "on"]), indirect=["mode"]
)
def test_no_connection_is_lost_by_reloads(preload: str, mode: str, tmp_path: Path) -> None:
    file = tmp_path / "version"
    file.write_text("1")
    env = {"VERSION_FILE": str(file)}
    with Server(PLAIN, mode, "--preload", preload, env=env) as server:
        with Talk(server) as talk:
            file.write_text("2")
            server.process.send_signal(signal.SIGHUP)
            talk.wait_version("2")
            server.process.send_signal(signal.SIGTTIN)
        assert not talk.faults


def test_an_upgrade(mode: str, tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    with Server(PLAIN, mode, "--pidfile", str(pidfile)) as server:
        with Talk(server) as talk:
            before = server.process.pid
            server.process.send_signal(signal.SIGUSR2)
            wait_for(lambda: pidfile.exists() and pidfile.read_text().strip() != str(before), "it")
            assert server.wait() == 0
            told(server)
        assert not talk.faults
        os.kill(int(pidfile.read_text()), signal.SIGTERM)
        wait_for(server.is_refusing, "the end of the successor")
        server.ended()


# The configuration


def test_beside_a_service_of_http(tmp_path: Path) -> None:
    file = tmp_path / "x.ini"
    file.write_text(
        "[http]\nbind = 127.0.0.1:0\nmode = single\n"
        "[service:web]\ntarget = apps/hello/app.py\n"
        f"[service:echo]\ntarget = {ECHO}\n"
    )
    done = run_command("check", "-c", str(file))
    assert f"would serve {ECHO} on tcp://127.0.0.1:0 (single, 1 worker)" in done.stdout
    assert "would serve apps/hello/app.py on http://127.0.0.1:0" in done.stdout


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("tcp:", "names no handler: say tcp:package.module:HANDLER"),
        ("tcp:apps/services/echo.py", "names no handler: say tcp:apps/services/echo.py:HANDLER"),
        ("tcp:apps/services/echo.py:handle", 'has no "handle"; did you mean "handler"'),
        ("tcp:apps/services/ecco.py:handler", 'did you mean "echo.py"'),
        ("tcp:asyncio:sleep", "is a coroutine"),
        ("tcp:os:getcwdb", ""),
        ("tcp:contextlib:suppress.__exit__", ""),
        ("tcp:bisect:insort.__name__", "cannot be called"),
        ("tcp:ast:parse", ""),
        ("tcp:this.py:handler", "there is no file this.py"),
        ("tcp:shlex:quote", "does not take what a handler gets: socket and address"),
    ],
)
def test_handlers_that_cannot_be(target: str, complaint: str) -> None:
    if not complaint:
        assert callable(load(target))
        return
    with pytest.raises(ApplicationError, match=re.escape(complaint)):
        load(target)


# The examples


def test_daytime(serve: Serve) -> None:
    with serve(DAYTIME).connect() as connection:
        line = connection.rest().decode("ascii")
    then = time.strptime(line, "%A, %B %d, %Y %H:%M:%S-UTC\r\n")
    assert abs(time.mktime(then) - time.mktime(time.gmtime())) < HANG


def figures(connection: Connection) -> dict[str, str]:
    """What the injector answers, by name."""
    return dict(line.split(None, 1) for line in connection.rest().decode().splitlines())


def injected(server: Server, line: str) -> dict[str, str]:
    """What the injector answers to an order."""
    with begun(server, line) as connection:
        return figures(connection)


def test_the_injector(serve: Serve) -> None:
    web = serve("apps/page/app.py", "--access-log", "-")
    for line, asked in [
        (f"http://127.0.0.1:{web.port}/index 200 random5", 200),
        (f"http://127.0.0.1:{web.port}/index 10 each5", 10),
        (f"http://127.0.0.1:{web.port}/?x=y", 1),
    ]:
        answer = injected(serve(INJECTOR), line)
        assert list(answer) == ["requests", "errors", "total", "mean", "min", "max", "rate"]
        assert (answer["requests"], answer["errors"]) == (str(asked), "0")
        least, mean, most = (
            float(answer[name].removesuffix(" ms")) for name in ("min", "mean", "max")
        )
        assert 0 < least <= mean <= most <= 1000 * float(answer["total"].split()[0]) + 1
    wait_for(lambda: web.output().count("\n") == 211, "all requests in the log")
    asked_for = re.findall(r'"GET (\S+) ', web.output())
    assert set(asked_for) == {"/?x=y", *(f"/index{page}.html" for page in range(1, 6))}


def test_what_the_injector_does_unasked(serve: Serve) -> None:
    order = f"http://127.0.0.1:{serve('apps/page/app.py').port}/ 7"
    with Server(INJECTOR, "single", env={"INJECT": order}) as server:
        for is_silent in (False, True):
            with server.connect() as connection:
                if not is_silent:
                    finish(connection)
                assert figures(connection)["requests"] == "7"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("http://192.0.2.1/", "only 127.0.0.1, ::1, localhost may be fired at"),
        ("https://127.0.0.1/", "the URL should look like"),
        ("http://127.0.0.1:99999/", "Port out of range"),
        ("http://127.0.0.1@192.0.2.1/", "only 127.0.0.1, ::1, localhost may be fired at"),
        ("http://127.0.0.1/ 0", "0 is no number from 1 to 100000"),
        ("http://127.0.0.1/ 100001", "100001 is no number from 1 to 100000"),
        ("http://127.0.0.1/ 5 random", "nothing is no number"),
        ("http://127.0.0.1/ 5 some", "which pages"),
        ("http://127.0.0.1/ 5 random5 more", "say URL, number of requests"),
    ],
)
def test_what_the_injector_refuses(serve: Serve, line: str, complaint: str) -> None:
    assert complaint in injected(serve(INJECTOR), line)["error"]


def test_the_injector_counts_errors(serve: Serve) -> None:
    url = f"http://127.0.0.1:{serve('apps/errors/app.py', tracebacks=True).port}"
    answer = injected(serve(INJECTOR), f"{url}/raise-before 3")
    assert (answer["errors"], answer["rate"]) == ("3", "0.0 requests/s")
    assert injected(serve(INJECTOR), f"{url}/too-short 2")["errors"] == "2"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 65_000_000,
    ],
    ids=["no number", "without an end"],
)
def test_the_injector_and_a_strange_server(serve: Serve, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as strange:
        address = f"http://127.0.0.1:{strange.getsockname()[1]}/ 1"
        with begun(serve(INJECTOR), address) as connection:
            asking, _ = strange.accept()
            with asking, suppress(ConnectionError):
                asking.recv(65536)
                asking.sendall(answer)
                if len(answer) > 1000:
                    # No more is waited for.
                    while asking.send(answer):
                        pass
            assert figures(connection)["errors"] == "1"


def test_the_three_injectors(tmp_path: Path) -> None:
    """The configuration as it is, but for the ports."""
    text = Path("apps/services/injectors.ini").read_text()
    assert re.findall(r"bind = (\S+)", text) == [
        f"127.0.0.1:{port}" for port in (8080, 1965, 1966, 1967)
    ]
    with Tree(tmp_path, re.sub(r"bind = (\S+):\d+", r"bind = \1:0", text)) as tree:
        order = f"http://127.0.0.1:{tree.ports['web']}/index 50 random5\n".encode()

        def inject(name: str) -> dict[str, str]:
            with Connection(("127.0.0.1", tree.ports[name])) as connection:
                connection.send(order)
                return figures(connection)

        assert tree.urls["injector1"].startswith("tcp://")
        with ThreadPoolExecutor(3) as pool:
            for answer in pool.map(inject, ["injector1", "injector2", "injector3"]):
                assert (answer["requests"], answer["errors"]) == ("50", "0")
        tree.process.terminate()
        assert tree.process.wait(HANG) == 0
