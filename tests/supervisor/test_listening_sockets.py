"""Listening sockets: opening, keeping over a reload, handing over."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import stat
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import poorhttp
from loadtests.network.port import free_port
from poorhttp.config.settings import Settings
from poorhttp.errors import BindError, ConfigError
from poorhttp.net.inherited import listeners_from_json, listeners_to_json
from poorhttp.net.listener import Listener
from poorhttp.net.sockets import listeners_of, open_listeners
from tests.supervisor.reloads import reload
from tests.support.forked_command import run_command
from tests.testkit.client import HANG, Connection
from tests.testkit.process import children, fdinfo
from tests.testkit.server import ROOT, Server, wait_for

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

ECHO = "tests/apps/echo.py"
ROBUST = str(ROOT / "tests/apps/robust.py")

#: Opens what the settings ask for; all of it is closed when the test has ended.
Open = Callable[..., list[Listener]]


@pytest.fixture
def opened() -> Iterator[Open]:
    every: list[Listener] = []

    def start(have: Sequence[Listener] = (), **options: object) -> list[Listener]:
        listeners = open_listeners(Settings(**options), have)
        every.extend(listeners)
        return listeners

    yield start
    for listener in every:
        listener.close()


def port_of(listener: Listener) -> int:
    return int(listener.socket.getsockname()[1])


def lets_in(listener: Listener) -> bool:
    """Whether somebody was waiting, who is let in and sent away."""
    with socket.socket(fileno=os.dup(listener.fileno())) as ears:
        try:
            ears.accept()[0].close()
        except BlockingIOError:
            return False
    return True


def reachable(listener: Listener) -> bool:
    """Whether a connection that is made now arrives at this listener."""
    with socket.socket(listener.socket.family) as client:
        return not client.connect_ex(listener.socket.getsockname()) and lets_in(listener)


# Several at once


def test_several_addresses_of_every_kind(folder: Path) -> None:
    name = secrets.token_hex(8)
    binds = ("127.0.0.1:0", "127.0.0.1:0", f"unix:{folder}/socket", f"unix:@{name}")
    with Server(ECHO, bind=binds) as server:
        *tcp, path, abstract = server.urls.split(", ")
        assert (path, abstract) == binds[2:]
        ports = {int(url.rpartition(":")[2]) for url in tcp}
        assert len(ports) == 2
        places: list[Any] = [("127.0.0.1", port) for port in ports]
        for where in (*places, f"{folder}/socket", f"\0{name}"):
            with Connection(where) as connection:
                assert connection.request("GET", "/here").status == 200
    assert os.listdir(folder) == []


def test_a_failure_closes_only_what_was_opened(opened: Open, folder: Path) -> None:
    have = opened(bind=[f"unix:{folder}/kept", "127.0.0.1:0"])
    with socket.create_server(("127.0.0.1", 0)) as other:
        binds = [f"unix:{folder}/kept", f"unix:{folder}/new", f"127.0.0.1:{other.getsockname()[1]}"]
        with pytest.raises(BindError, match=binds[2]):
            opened(have, bind=binds)
    assert reachable(have[0])
    assert reachable(have[1])
    assert os.listdir(folder) == ["kept"]


# Over a reload


def test_what_is_wanted_again_is_kept(opened: Open, folder: Path) -> None:
    have = opened(bind=["127.0.0.1:0", "127.0.0.1:0", "localhost:0", f"unix:{folder}/one"])
    again = opened(have, bind=[f"unix:{folder}/two", "localhost:0", "127.0.0.1:0"])
    kept = [listener for listener in again if listener in have]
    assert kept == [*have[2:-1], have[0]]
    assert again[0] not in have
    assert reachable(again[0])
    assert reachable(have[1]), "what becomes of what is not wanted is up to the caller"


def test_an_address_of_another_service_is_kept_but_not_its_chance_port(opened: Open) -> None:
    # No other test gets it when it is free.
    port = free_port()
    fixed, chance = opened(bind=[f"127.0.0.1:{port}", "127.0.0.1:0"])
    settings = Settings(bind=[f"127.0.0.1:{port}", "127.0.0.1:0"])
    settings.service = "other"
    again = open_listeners(settings, [fixed, chance])
    assert again[0] is fixed
    assert port_of(again[1]) != port_of(chance)
    again[1].close()


# A socket for each worker


def test_a_longer_queue(opened: Open, folder: Path) -> None:
    """Of a Unix socket whose queue is full, the kernel says so at once."""

    def arrivals() -> int:
        clients = []
        while True:
            client = socket.socket(socket.AF_UNIX)
            client.setblocking(False)
            clients.append(client)
            if client.connect_ex(f"{folder}/socket"):
                break
        for each in clients:
            each.close()
        assert all(lets_in(listener) for _ in clients[1:])
        return len(clients) - 1

    (listener,) = opened(bind=f"unix:{folder}/socket", backlog=3)
    assert arrivals() == 4
    assert opened([listener], bind=f"unix:{folder}/socket", backlog=20) == [listener]
    assert arrivals() == 21


def accepted(listener: Listener) -> int:
    number = 0
    while lets_in(listener):
        number += 1
    return number


def test_a_socket_for_each_worker(opened: Open, folder: Path) -> None:
    binds = ["127.0.0.1:0", f"unix:{folder}/socket"]
    listeners = opened(bind=binds, reuse_port="on", workers=3)
    *own, shared = listeners
    assert [listener.worker_index for listener in listeners] == [0, 1, 2, None]
    assert len({port_of(listener) for listener in own}) == 1
    assert listeners_of(listeners, 1) == [own[1], shared]
    clients = [socket.create_connection(("127.0.0.1", port_of(own[0]))) for _ in range(100)]
    shares = [accepted(listener) for listener in own]
    assert sum(shares) == 100
    assert all(shares)
    for client in clients:
        client.close()


def test_nobody_else_joins_it(opened: Open) -> None:
    """`SO_REUSEPORT` alone would let two servers share a port without noticing."""
    listener = opened(bind="127.0.0.1:0", reuse_port="on", workers=2)[0]
    with pytest.raises(BindError, match="another program listens there"):
        opened(bind=f"127.0.0.1:{port_of(listener)}", reuse_port="on", workers=2)


def test_switching_it_loses_nobody_who_waits(opened: Open) -> None:
    (one,) = opened(bind="127.0.0.1:0")
    waiting = [socket.create_connection(("127.0.0.1", port_of(one)))]
    own = opened([one], bind="127.0.0.1:0", reuse_port="on", workers=2)
    one.close()
    assert [listener.worker_index for listener in own] == [0, 1]
    assert [port_of(listener) for listener in own] == [own[0].socket.getsockname()[1]] * 2
    assert sum(accepted(listener) for listener in own) == 1
    for listener in reversed(own[1:]):
        listener.close()
    waiting += [socket.create_connection(("127.0.0.1", port_of(own[0])))]
    (back,) = opened(own, bind="127.0.0.1:0")
    own[0].close()
    assert back.worker_index is None
    assert accepted(back) == 1
    for client in waiting:
        client.close()


def test_workers_with_sockets_of_their_own_serve(mode: str) -> None:
    with Server(ECHO, mode, "--reuse-port", "--workers", "3") as server:
        assert server.urls.count("http://") == 1
        for _ in range(30):
            assert server.get("/x").status == 200
        server.process.send_signal(signal.SIGTTIN)
        server.wait_log("with reuse_port, change workers and reload")
        reload(server)
        for _ in range(30):
            assert server.get("/x").status == 200


# Unix sockets: permissions, owners, files


def test_a_connection_wakes_few_of_many_workers() -> None:
    """Of workers beyond the four with the fewest connections, each wakes only one."""
    with Server(ECHO, "single", "--workers", "7") as server:

        def in_turn() -> int:
            """Workers whose poller has the listening socket with EPOLLEXCLUSIVE."""
            assert server.get("/").status == 200
            text = "".join(map(fdinfo, children(server.process.pid)))
            return len(re.findall(r"^tfd: .* events: 1\w{7} ", text, re.MULTILINE))

        # All are woken until the first connections have told each of the others.
        wait_for(lambda: in_turn() == 3, "three workers that take turns")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_mode(opened: Open, folder: Path, umask: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(umask)
    try:
        have = opened(bind=f"unix:{folder}/socket", socket_mode="0620")
        assert mode_of(folder / "socket") == 0o620
        assert opened(have, bind=f"unix:{folder}/socket", socket_mode="0666") == have
        assert mode_of(folder / "socket") == 0o666
        opened(bind=f"unix:{folder}/another")
        assert mode_of(folder / "another") == 0o777 & ~umask
        # Between bind(2) and chmod(2) nobody may come in who may not afterwards.
        monkeypatch.setattr(os, "chmod", lambda path, mode: None)
        opened(bind=f"unix:{folder}/private", socket_mode="0600")
        assert mode_of(folder / "private") == 0o600
    finally:
        os.umask(before)


def test_owner(opened: Open, folder: Path) -> None:
    path = folder / "socket"
    if os.getuid() == 0:
        (listener,) = opened(bind=f"unix:{path}", socket_owner="nobody:daemon")
        assert (path.owner(), path.group()) == ("nobody", "daemon")
        opened([listener], bind=f"unix:{path}", socket_owner=":12345", socket_mode="0660")
        assert (path.owner(), path.stat().st_gid, mode_of(path)) == ("nobody", 12345, 0o660)
    else:
        with pytest.raises(ConfigError, match=r"^socket_owner: only root may give"):
            opened(bind=f"unix:{path}", socket_owner="nobody")
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("owner", "complaint"),
    [
        ("nobodi", '^socket_owner: there is no user "nobodi"; did you mean "nobody"\\?$'),
        ("nobody:", '^socket_owner: "nobody:" names no group; write USER'),
        ("4294967295", "^socket_owner: .* is too large"),
    ],
)
def test_no_such_owner(opened: Open, folder: Path, owner: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        opened(bind=f"unix:{folder}/socket", socket_owner=owner)
    assert list(folder.iterdir()) == []


def test_a_file_that_is_not_ours_any_more_stays(opened: Open, folder: Path) -> None:
    path = folder / "socket"
    (first,) = opened(bind=f"unix:{path}")
    first.release()
    (second,) = opened(bind=f"unix:{path}")
    first.close()
    assert path.is_socket(), "the file of our successor was removed"
    assert reachable(second)
    if (child := os.fork()) == 0:
        second.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert path.is_socket(), "a child removed the file of its parent"
    second.close()
    assert not path.exists()


# Handing over


def test_handing_over(opened: Open, folder: Path) -> None:
    options: dict[str, object] = {
        "bind": ["127.0.0.1:0", f"unix:{folder}/socket", f"unix:@{secrets.token_hex(8)}"],
        "reuse_port": "on",
        "workers": 2,
    }
    old = opened(**options)
    # What another process would inherit.
    inherited = {listener.fileno(): os.dup(listener.fileno()) for listener in old}
    text = listeners_to_json(old)
    for number, copy in inherited.items():
        text = text.replace(f'"fd": {number},', f'"fd": {copy},')
        os.set_inheritable(copy, True)
    new = listeners_from_json(text)
    assert opened(new, **options) == new
    assert [listener.url for listener in new] == [listener.url for listener in old]
    assert not any(os.get_inheritable(listener.fileno()) for listener in new)
    for listener in old:
        listener.release()
    assert all(reachable(listener) for listener in new[2:])
    new[2].close()
    assert (folder / "socket").is_socket(), "the old process may have to go on"
    new[2].owned = True
    new[2].close()
    assert not (folder / "socket").exists()


# Of a server


def test_closed_server_frees_its_port(mode: str) -> None:
    """Although the application has kept what belongs to a request."""
    kept = []

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        kept.append(start_response)
        start_response("200 OK", [])
        return [b"kept"]

    # No other test gets it when it is free.
    bind = f"127.0.0.1:{free_port()}"
    with poorhttp.Server(application, mode=mode, bind=bind) as server:
        with urllib.request.urlopen(server.url, timeout=HANG) as answer:
            assert answer.read() == b"kept"
        host, _, port = server.url.removeprefix("http://").partition(":")
    assert kept
    with pytest.raises(ConnectionRefusedError):
        Connection((host, int(port)))


def test_relative_unix_path(mode: str, folder: Path) -> None:
    path = folder / "socket"
    with Server(ROBUST, mode, bind=("unix:socket",), cwd=folder) as server:
        with Connection(str(path)) as connection:
            assert connection.request("GET", "/chdir").status == 200
        server.stop()
    assert not path.exists()


def test_regular_file_in_the_place_of_a_socket(folder: Path) -> None:
    path = folder / "precious"
    path.write_text("data")
    done = run_command("serve", ROBUST, "--bind", f"unix:{path}", cwd=folder)
    assert done.returncode == 5
    assert re.fullmatch(r"poorhttp: .*/precious: .* is not a socket, .*\n", done.stderr)
    assert path.read_text() == "data"
