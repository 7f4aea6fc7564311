"""Socket activation and notifications of systemd, played by the tests with real sockets."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from poorhttp.plugins.systemd.notifier import Notifier
from tests.supervisor.reloads import reload
from tests.supervisor.service_manager import ServiceManager
from tests.support import tls_client
from tests.support.binary_upgrade import end
from tests.support.certificate import certificate
from tests.support.forked_command import run_command
from tests.support.services import Tree
from tests.testkit.client import HANG, Connection
from tests.testkit.process import children, wait_for_end
from tests.testkit.server import Server, command, run, wait_for
from tests.testkit.versions import APP, Versions, told

ECHO = "tests/apps/echo.py"
SECURE = "tests/apps/secure.py"
SURROUNDINGS = "tests/apps/surroundings.py"

#: Passes descriptors as systemd does: from number 3, and by the pid that the server will have.
ACTIVATOR = """
import fcntl, os, sys
numbers, names, *command = sys.argv[1:]
fds = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 100) for number in numbers.split(",")]
for index, fd in enumerate(fds):
    os.dup2(fd, 3 + index)
for variable, value in {
    "LISTEN_PID": os.getpid() + int(os.environ.pop("ERROR", "0")),
    "LISTEN_FDS": len(fds), "LISTEN_FDNAMES": names,
}.items():
    os.environ[variable] = str(value)
os.execv(command[0], command)
"""


def activator(fds: Sequence[int], names: str = "") -> tuple[str, ...]:
    """The command that passes the descriptors to the command behind it."""
    return (sys.executable, "-c", ACTIVATOR, ",".join(map(str, fds)), names)


@pytest.fixture
def tcp() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


@pytest.fixture
def unix(folder: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(folder / "socket"))
        sock.listen()
        yield sock


def ask(where: Any) -> Any:
    """What the application says of its surroundings."""
    with Connection(where) as connection:
        return connection.request("GET", "/").json()


# Socket activation


def activated(
    app: str, sockets: Sequence[socket.socket], names: str = "", *options: str, **more: Any
) -> Server:
    """A server that is passed sockets, whatever it shall listen on."""
    fds = tuple(sock.fileno() for sock in sockets)
    more.setdefault("bind", ())
    return Server(app, *options, inherit=fds, launcher=activator(fds, names), **more)


def test_sockets_that_were_passed(mode: str, tcp: socket.socket, unix: socket.socket) -> None:
    """The variable of a platform does not count beside them."""
    with activated(SURROUNDINGS, (tcp, unix), "web:local", mode, env={"PORT": "1"}) as server:
        host, port = tcp.getsockname()
        assert server.urls == f"http://{host}:{port}, unix:{unix.getsockname()}"
        for where in (tcp.getsockname(), unix.getsockname()):
            variables = ask(where)["environ"]
            assert not [name for name in variables if name.startswith("LISTEN_")]
    assert Path(unix.getsockname()).is_socket(), "the file belongs to systemd"
    # Nobody accepts any more, but the sockets still listen, for the next start.
    with socket.create_connection(tcp.getsockname()):
        pass


def test_one_of_those_that_were_passed(
    tcp: socket.socket, unix: socket.socket, folder: Path
) -> None:
    sockets = (tcp, unix)
    bind = ("fd:local", f"unix:{folder}/another")
    with activated(ECHO, sockets, "web:local", bind=bind) as server:
        assert server.urls == f"unix:{unix.getsockname()}, unix:{folder}/another"
    with activated(ECHO, sockets, "web:local", bind=("fd:3",)) as server:
        assert server.port == tcp.getsockname()[1]


def test_one_for_tls(tcp: socket.socket, folder: Path) -> None:
    options = (
        "single",
        "--tls-certificate",
        tls_client.write(folder, "both.pem", certificate().issued),
    )
    with activated(SECURE, [tcp], "web", *options, bind=("https+fd:web",)) as server:
        assert server.port == tcp.getsockname()[1]
        assert tls_client.told(server)["scheme"] == "https"
    # It still listens: the filter that a server sets for its own sockets would drop this.
    with socket.create_connection(tcp.getsockname(), HANG):
        pass


def test_those_for_another_process(tcp: socket.socket) -> None:
    """Variables that were left in the environment by somebody else."""
    bind = ("127.0.0.1:0",)
    with activated(SURROUNDINGS, [tcp], bind=bind, env={"ERROR": "1"}) as server:
        assert server.port != tcp.getsockname()[1]
        found = server.get("/").json()["environ"]
        assert not [name for name in found if name.startswith("LISTEN_")]


def test_they_stay_over_reload_and_upgrade(tcp: socket.socket) -> None:
    with activated(SURROUNDINGS, [tcp]) as server:
        before = ask(tcp.getsockname())
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: ask(tcp.getsockname())["pid"] != before["pid"], "a new worker")
        assert ask(tcp.getsockname())["parent"] == server.process.pid
        server.process.send_signal(signal.SIGUSR2)
        assert server.wait() == 0
        successor = ask(tcp.getsockname())["parent"]
        assert successor != server.process.pid
        end(server, successor)


def refused(fds: Sequence[int], *arguments: str) -> str:
    """The message of a server that cannot use what it is passed."""
    done = run(*activator(fds, "web:local"), *command("serve", ECHO, *arguments), inherit=fds)
    assert done.returncode == 5, done.stderr
    assert done.stderr.startswith("poorhttp: cannot listen on ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_what_cannot_be_used(tcp: socket.socket, folder: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        assert "fd:*: it is a socket for datagrams" in refused([datagrams.fileno()])
    with socket.create_connection(tcp.getsockname()) as connected:
        message = refused([tcp.fileno(), connected.fileno()])
        assert "fd:*: it does not listen; pass a listening socket (systemd: Accept=no)" in message
    with (folder / "file").open("w") as file:
        message = refused([tcp.fileno(), file.fileno()], "--bind", "fd:4")
        assert re.search(r"fd:4: .*non-socket; pass a listening socket", message), message
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW) as netlink:
        assert "it is neither a TCP nor a Unix socket" in refused([netlink.fileno()])

    message = refused([tcp.fileno(), tcp.fileno()], "--bind", "fd:wep")
    assert message.endswith("passed no socket of that name; it passed fd:web, fd:local\n")
    done = run_command("check", ECHO, "--bind", "fd:web")
    assert done.returncode == 5
    assert "it passed none; is the socket unit started?" in done.stderr


# Notifications


@pytest.fixture(params=["path", "abstract"])
def manager(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ServiceManager]:
    """One that the environment of this process names."""
    abstract = request.param == "abstract"
    address = f"@{secrets.token_hex(8)}" if abstract else str(folder / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    with ServiceManager(address) as manager:
        yield manager


def test_messages_of_several_lines_and_the_end(manager: ServiceManager) -> None:
    """Those that a server sends in its life are in `test_the_life_of_a_server`."""
    notifier = Notifier()
    assert "NOTIFY_SOCKET" not in os.environ, "the application must not speak for us"
    assert notifier.environ == {"NOTIFY_SOCKET": manager.env["NOTIFY_SOCKET"]}
    assert notifier.watchdog_seconds == 0
    notifier.status("one\nMAINPID=1")
    assert manager.heard() == {"STATUS": "one MAINPID=1"}
    notifier.close()
    notifier.watchdog()
    assert manager.nothing()


def test_nobody_who_reads(manager: ServiceManager) -> None:
    """It must not hold us up."""
    notifier = Notifier()
    for _ in range(5000):
        notifier.status("x" * 1000)
    notifier.close()
    heard = []
    while not manager.nothing():
        heard.append(manager.heard())
    assert 0 < len(heard) < 5000
    assert all(message == {"STATUS": "x" * 1000} for message in heard)


@pytest.fixture
def notified(folder: Path) -> Iterator[ServiceManager]:
    with ServiceManager(folder / "notify") as manager:
        yield manager


def test_the_life_of_a_server(notified: ServiceManager) -> None:
    with Server(SURROUNDINGS, "threading", "--workers", "2", env=notified.env) as server:
        assert notified.until("READY")["STATUS"] == "2 workers"
        for _ in range(3):
            notified.until("WATCHDOG")
        variables = server.get("/").json()["environ"]
        assert not variables.keys() & notified.env.keys()
        before = time.monotonic_ns() // 1000
        server.process.send_signal(signal.SIGHUP)
        found = notified.until("RELOADING")
        assert found["RELOADING"] == "1"
        assert before <= int(found["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
        notified.until("READY")
        server.process.send_signal(signal.SIGUSR2)
        successor = int(notified.until("MAINPID")["MAINPID"])
        assert successor != server.process.pid
        assert server.wait() == 0
        notified.until("WATCHDOG")
        os.kill(successor, signal.SIGTERM)
        notified.until("STOPPING")
        wait_for_end(successor)
        server.ended()


def test_a_process_that_serves_alone(notified: ServiceManager, folder: Path) -> None:
    path = folder / "pid"
    options = ("--supervisor", "off", "--pidfile", str(path), "--umask", "0027")
    with Server(SURROUNDINGS, "threading", *options, env=notified.env) as server:
        notified.until("READY")
        assert path.read_text() == f"{server.process.pid}\n"
        found = server.get("/").json()
        assert found["umask"] == 0o027
        assert "NOTIFY_SOCKET" not in found["environ"]
    notified.until("STOPPING")
    assert not path.exists()


# The watchdog


@pytest.mark.parametrize(
    ("microseconds", "pid", "expected"),
    [
        ("20000000", "", 20.0),
        pytest.param("500000", str(os.getpid()), 0.5, id="ours"),
        ("20000000", "1", 0.0),
        ("soon", "", 0.0),
        ("", "", 0.0),
    ],
)
def test_its_variables(
    microseconds: str, pid: str, expected: float, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(folder / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    if pid:
        monkeypatch.setenv("WATCHDOG_PID", pid)
    notifier = Notifier()
    assert notifier.watchdog_seconds == expected
    # Its successor, which has another number, has the same watchdog.
    assert notifier.environ.get("WATCHDOG_USEC") == (microseconds if expected else None)
    assert "WATCHDOG_PID" not in notifier.environ
    assert not [name for name in os.environ if name.startswith("WATCHDOG_")]
    notifier.close()


def test_it_hears_from_us_while_workers_answer(
    mode: str, notified: ServiceManager, versions: Versions
) -> None:
    with versions.serve(mode, "--workers", "2", env=notified.env) as server:
        for _ in range(3):
            notified.until("WATCHDOG")
        one, other = children(server.process.pid)
        # One that answers is enough.
        os.kill(one, signal.SIGSTOP)
        notified.forget()
        for _ in range(8):
            notified.until("WATCHDOG")
        os.kill(other, signal.SIGSTOP)
        server.wait_log("no worker answers")
        notified.forget()
        os.kill(other, signal.SIGCONT)
        notified.until("WATCHDOG")
        os.kill(one, signal.SIGCONT)
        assert told(server)["version"] == "1"
        reload(server)
        notified.until("WATCHDOG")


HANDLER = """
def handler(sock, address):
    sock.sendall(b"begins")
    while sock.recv(100):
        pass
"""


def test_a_service_of_raw_tcp_beside_another(notified: ServiceManager, tmp_path: Path) -> None:
    """Its threads may be in handlers for ever: it is left alone, and does not speak for others."""
    (tmp_path / "handler.py").write_text(HANDLER)
    text = (
        "[http]\nmode = single\nbind = 127.0.0.1:0\n"
        f"[service:web]\ntarget = {APP}\n"
        f"[service:lines]\ntarget = tcp:{tmp_path}/handler.py:handler\n"
    )
    with Tree(tmp_path, text, **notified.env) as tree:
        with socket.create_connection(("127.0.0.1", tree.ports["lines"]), HANG) as busy:
            assert busy.recv(100) == b"begins"
            notified.forget()
            for _ in range(8):
                notified.until("WATCHDOG")
            web = json.loads(tree.get("web"))["pid"]
            os.kill(web, signal.SIGSTOP)
            tree.wait_log("service web: no worker answers")
            os.kill(web, signal.SIGCONT)
            notified.forget()
            notified.until("WATCHDOG")
        tree.process.terminate()
        assert tree.wait() == 0
