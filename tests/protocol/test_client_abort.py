"""Requests whose client has closed the connection before they are run, in every mode."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import pytest

from tests.support.each_value import DIFFERENT, each_value
from tests.support.status_reader import Admin
from tests.testkit.cases import gateway
from tests.testkit.client import Closed, Connection
from tests.testkit.server import Server, wait_for

BUSY = "tests/apps/busy.py"
STATUSES = "tests.apps.statuses:application"

#: Longer than a request waits before it is said to have waited (`client_abort.rs`), in seconds.
NOTICEABLE = 0.05

#: As long as a request takes for which the server asks whether its client is still there.
WORTH_ASKING = 0.1

#: In three states, for each of which the kernel has another queue: connected while the server is
#: busy, connected before, and before with a request that was answered.
KINDS = ("new", "idle", "kept")

#: More than are accepted at once, and than are looked at before the sockets are polled again.
MANY = 300


@contextmanager
def server(
    mode: str, tmp_path: Path, *options: str, bind: tuple[str, ...] = ("127.0.0.1:0",)
) -> Iterator[Server]:
    """One with two threads, which logs each request as status and target."""
    log = ("--access-log", str(tmp_path / "access"), "--access-log-format", "%s %U")
    few = ("--drain-timeout", "0", "--threads", "2" if mode == "threading" else "1")
    with Server(BUSY, mode, *log, *few, *options, bind=bind) as running:
        yield running


@contextmanager
def held(server: Server, gate: Path) -> Iterator[None]:
    """Every thread has a request, until the end of this context."""
    threads = 2 if server.mode in ("forking", "threading") else 1
    holding = []
    for number in range(threads):
        holding.append(server.connect())
        holding[-1].send_request("GET", f"/hold?{gate}")
        server.wait_log(f"holds {gate}\n", number + 1)
    yield
    # No limit that is asserted: whoever waits has to wait for so long at least.
    time.sleep(NOTICEABLE)
    gate.touch()
    for connection in holding:
        assert connection.response().status == 200


def logged(tmp_path: Path, status: int) -> int:
    return len(re.findall(rf"^{status} /", (tmp_path / "access").read_text(), re.MULTILINE))


def connections(server: Server, kind: str, count: int) -> list[Connection]:
    made = [server.connect() for _ in range(count)] if kind != "new" else []
    if kind == "kept":
        for connection in made:
            assert connection.request("GET", "/before").status == 200
    elif kind == "idle":
        # The server has found that nothing has come on them yet.
        assert server.get("/before").status == 200
    return made


@pytest.mark.parametrize(
    ("mode", "leave"),
    each_value(DIFFERENT, [Connection.close, Connection.reset]),
    indirect=["mode"],
)
def test_a_request_of_a_departed_client_is_not_run(
    mode: str, tmp_path: Path, leave: Callable[[Connection], None]
) -> None:
    count = 40
    with server(mode, tmp_path) as running:
        for number, kind in enumerate(KINDS, 1):
            made = connections(running, kind, count)
            with held(running, tmp_path / kind):
                for connection in made or [running.connect() for _ in range(count)]:
                    connection.send_request("POST", "/work", body=b"x" * 100)
                    leave(connection)
            assert running.get("/after").body == b"/after 0\n", kind
            # The workers of `forking` share what waits.
            left = number * count
            wait_for(lambda: logged(tmp_path, 499) == left, f"{left} times 499, {kind}")  # noqa: B023
        assert "ran POST /work\n" not in running.log()


def test_more_than_are_noticed_at_once(mode: str, tmp_path: Path) -> None:
    with server(mode, tmp_path, "--backlog", str(MANY)) as running:
        kept = connections(running, "kept", MANY)
        with held(running, tmp_path / "gate"):
            for connection in kept:
                connection.send_request("GET", "/work")
                connection.close()
            for _ in range(MANY):
                with running.connect() as connection:
                    connection.send_request("GET", "/work")
        assert running.get("/after").status == 200
        lines = re.compile(r"^(?:200|499) /work$", re.MULTILINE)
        text = (tmp_path / "access").read_text
        wait_for(lambda: len(lines.findall(text())) == 2 * MANY, f"{2 * MANY} lines")
        # Where a busy machine lets a thread wait between two polls, it cannot tell that requests of
        # the second had to wait, and runs them.
        assert running.log().count("ran GET /work\n") <= MANY // 10


@pytest.mark.each_mode
def test_what_is_found_at_the_end_of_a_slow_request_has_waited_for_it(
    mode: str, tmp_path: Path
) -> None:
    # The poller is asked at the end of a request that has taken a quarter of this.
    slow = str(NOTICEABLE * 2)
    with server(mode, tmp_path, "--slow-request", slow) as running:
        kept = connections(running, "kept", 4)
        with held(running, tmp_path / "gate"):
            for connection in [*kept, *(running.connect() for _ in range(4))]:
                connection.send_request("GET", "/work")
                connection.close()
        assert running.get("/after").status == 200
        wait_for(lambda: logged(tmp_path, 499) == 8, "8 times 499")
        assert "ran GET /work\n" not in running.log()


@pytest.mark.each_mode
def test_who_stays_is_answered(mode: str, tmp_path: Path) -> None:
    with server(mode, tmp_path) as running:
        kept = connections(running, "kept", 4)
        with held(running, tmp_path / "gate"):
            staying = [*kept, *(running.connect() for _ in range(4))]
            for number, connection in enumerate(staying):
                connection.send_request("GET", f"/stays/{number}")
                with running.connect() as leaving:
                    leaving.send_request("GET", "/leaves")
        for number, connection in enumerate(staying):
            assert connection.response().body == f"/stays/{number} 0\n".encode()
        wait_for(lambda: logged(tmp_path, 499) == len(staying), "499 for those who left")
        assert "ran GET /leaves\n" not in running.log()


def close_half(connection: Connection, *targets: str) -> None:
    """Ask, and say that this is all, as `nc -N` does."""
    for target in targets:
        connection.send_request("GET", target)
    connection.socket.shutdown(socket.SHUT_WR)


def test_a_closed_half_is_answered_where_the_request_begins_at_once(
    mode: str, tmp_path: Path
) -> None:
    with server(mode, tmp_path) as running:
        waited = 0

        def answered(kept: bool) -> bool:
            """Whether it began at once: on a busy machine, it may wait as if others were before."""
            nonlocal waited
            connection = running.connect()
            if kept:
                assert connection.request("GET", "/before").status == 200
            close_half(connection, "/half")
            with suppress(Closed):
                assert connection.response().body == b"/half 0\n"
                assert connection.at_end()
                return True
            waited += 1
            return False

        for kept in (False, True):
            wait_for(lambda: answered(kept), "an answer to a closed half")  # noqa: B023
        wait_for(lambda: logged(tmp_path, 499) == waited, "499 for those that waited")


def test_a_closed_half_may_wait_where_that_is_configured(mode: str, tmp_path: Path) -> None:
    with server(mode, tmp_path, "--abort-on-close", "off") as running:
        halves = connections(running, "kept", 4)
        with held(running, tmp_path / "gate"):
            halves += [running.connect() for _ in range(4)]
            for connection in halves:
                close_half(connection, "/half")
            with running.connect() as leaving:
                leaving.send_request("GET", "/leaves")
            # A reset leaves no doubt.
            reset = running.connect()
            reset.send_request("GET", "/resets")
            reset.reset()
        for connection in halves:
            assert connection.response().body == b"/half 0\n"
        wait_for(lambda: logged(tmp_path, 499) == 1, "499 for the one that was reset")
        assert "ran GET /resets\n" not in running.log()
        running.wait_log("ran GET /leaves\n")


@pytest.mark.each_mode
def test_a_request_that_waits_for_its_own_predecessors_is_answered(
    mode: str, tmp_path: Path
) -> None:
    with server(mode, tmp_path) as running:
        for at_once in (True, False):
            gate = tmp_path / f"gate-{at_once}"
            connection = running.connect()
            targets = [f"/hold?{gate}", "/second", "/third"]
            if not at_once:
                connection.send_request("GET", targets.pop(0))
                running.wait_log(f"holds {gate}\n")
            close_half(connection, *targets)
            running.wait_log(f"holds {gate}\n")
            time.sleep(NOTICEABLE)
            gate.touch()
            bodies = [connection.response().body for _ in range(3)]
            assert bodies == [b"/hold 0\n", b"/second 0\n", b"/third 0\n"]


def test_a_unix_socket_tells_a_closed_half_from_a_departure(
    mode: str, tmp_path: Path, folder: Path
) -> None:
    path = str(folder / "socket")
    with server(mode, tmp_path, bind=("127.0.0.1:0", f"unix:{path}")) as running:
        with held(running, tmp_path / "gate"):
            half, leaving = Connection(path), Connection(path)
            close_half(half, "/half")
            leaving.send_request("GET", "/leaves")
            leaving.close()
        with half:
            assert half.response().body == b"/half 0\n"
        wait_for(lambda: logged(tmp_path, 499) == 1, "499 for the one that left")
        assert "ran GET /leaves\n" not in running.log()


def test_gateways(mode: str, tmp_path: Path) -> None:
    """Only FastCGI has a record that says that the client has left."""
    protocols = ("uwsgi", "scgi", "fastcgi")
    ends = {"fin": Connection.close, "reset": Connection.reset, "abort": abort}
    variables = [(b"REQUEST_METHOD", b"GET"), (b"REQUEST_URI", b"/leaves")]
    variables += [(b"SERVER_PROTOCOL", b"HTTP/1.1"), (b"REMOTE_ADDR", b"192.0.2.1")]
    bind = ("127.0.0.1:0", *(f"{protocol}://127.0.0.1:0" for protocol in protocols))
    with server(mode, tmp_path, "--trusted-proxies", "127.0.0.1", bind=bind) as running:
        left = 0
        for protocol, how in [*product(protocols, ["fin", "reset"]), ("fastcgi", "abort")]:
            address = ("127.0.0.1", running.port_of(protocol))
            with held(running, tmp_path / f"{protocol}-{how}"):
                made = [Connection(address) for _ in range(5)]
                for connection in made:
                    connection.send(gateway.pack(protocol, variables))
                    ends[how](connection)
            assert running.get("/after").status == 200
            left += len(made)
            wait_for(lambda: logged(tmp_path, 499) == left, f"{left} times 499: {protocol} {how}")  # noqa: B023
            for connection in made:
                connection.close()
        assert "ran GET /leaves\n" not in running.log()


def abort(connection: Connection) -> None:
    """Send the record of FastCGI that aborts a request."""
    connection.send(gateway.record(2, b""))


@pytest.mark.parametrize(
    ("mode", "leave"),
    each_value(DIFFERENT, [Connection.close, Connection.reset]),
    indirect=["mode"],
)
def test_who_leaves_while_the_application_works(
    mode: str, tmp_path: Path, folder: Path, leave: Callable[[Connection], None]
) -> None:
    """Counted and logged with 499, as by nginx; who stays is not."""
    admin = Admin(folder)
    path = folder / "server"
    bind = ("127.0.0.1:0", f"unix:{path}")
    with server(mode, tmp_path, *admin.options, bind=bind) as running:
        for number, where in enumerate(("new", "kept", "unix"), 1):
            with Connection(str(path)) if where == "unix" else running.connect() as leaving:
                if where == "kept":
                    assert leaving.request("GET", "/before").status == 200
                gate = tmp_path / where
                leaving.send_request("GET", f"/hold?{gate}")
                running.wait_log(f"holds {gate}\n")
                leave(leaving)
            # So long a request is worth asking the kernel for its client.
            time.sleep(2 * WORTH_ASKING)
            gate.touch()
            wait_for(lambda: logged(tmp_path, 499) == number, f"the line of {where}")  # noqa: B023
        found = admin.figures()
        assert (found["departed"], found["responses"]["4xx"]) == (3, 3)
        with held(running, tmp_path / "other"):
            time.sleep(2 * WORTH_ASKING)
        assert running.get("/after").status == 200
        assert admin.figures()["departed"] == logged(tmp_path, 499) == 3
        # Noticed when sending fails, however short it was.
        with Connection(str(path)) as leaving:
            gate = tmp_path / "short"
            leaving.send_request("GET", f"/hold?{gate}")
            running.wait_log(f"holds {gate}\n")
        gate.touch()
        wait_for(lambda: logged(tmp_path, 499) == 4, "the line")


def test_who_leaves_in_the_middle_of_the_response(tmp_path: Path, folder: Path) -> None:
    """Has got the status that the log has."""
    admin, access = Admin(folder), tmp_path / "access"
    log = ("--access-log", str(access), "--access-log-format", "%s %U %X")
    with Server(STATUSES, "threading", *log, *admin.options) as running:
        with running.connect() as leaving:
            leaving.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            leaving.send_request("POST", "/200", body=b"x" * 8_000_000)
            assert leaving.socket.recv(1) == b"H"
        wait_for(lambda: access.read_text() == "200 /200 X\n", "the line")
        assert admin.figures()["departed"] == 0
