"""Clients that leave before their request is run, within it, and within the response."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.conftest import Serve
from tests.support.each_value import DIFFERENT, each_value
from tests.support.status_reader import Admin
from tests.testkit.cases import gateway
from tests.testkit.client import Closed, Connection, receive
from tests.testkit.process import children, descriptors
from tests.testkit.server import Server, wait_for

ALONE = True

#: Longer than a request waits before it is said to have waited (`client_abort.rs`), in seconds.
NOTICEABLE = 0.05

#: As long as a request takes for which the server asks whether its client is still there.
WORTH_ASKING = 0.1

#: In three states, for each of which the kernel has another queue: connected while the server is
#: busy, connected before, and before with a request that was answered.
KINDS = ("new", "idle", "kept")

#: More than are accepted at once, and than are looked at before the sockets are polled again.
MANY = 300


class Busy(Server):
    """A server with two threads, which logs each request as status and target."""

    #: Its Unix socket, if it has one.
    path = ""

    def __init__(
        self, mode: str, folder: Path, *options: str, bind: tuple[str, ...] = ("127.0.0.1:0",)
    ) -> None:
        self.access = folder / "access"
        log = ("--access-log", str(self.access), "--access-log-format", "%s %U")
        few = ("--drain-timeout", "0", "--threads", "2" if mode == "threading" else "1")
        super().__init__("tests/apps/busy.py", mode, *log, *few, *options, bind=bind)
        self.begin()

    def begin(self) -> None:
        """Look at what is logged from now on only."""
        self.before = self.log_size(), len(self.access.read_bytes())

    def logged(self) -> int:
        """How many lines there are with 499."""
        return self.access.read_text()[self.before[1] :].count("499 /")

    def wait_logged(self, times: int, what: str = "") -> None:
        """Wait for so many lines with 499."""
        wait_for(lambda: self.logged() == times, f"{times} times 499 {what}")

    def hold(self, connection: Connection, gate: Path) -> Connection:
        """Have a request wait in the application until the file `gate` exists."""
        before = self.log().count(f"holds {gate}\n")
        connection.send_request("GET", f"/hold?{gate}")
        self.wait_log(f"holds {gate}\n", before + 1)
        return connection

    def has_run(self, request: str) -> int:
        """How often the application has run this."""
        return self.log(self.before[0]).count(f"ran {request}\n")


@pytest.fixture(scope="module")
def busy(mode: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Busy]:
    """The server of all tests that need no option of their own."""
    with TemporaryDirectory() as folder:
        addresses = [f"{protocol}://127.0.0.1:0" for protocol in gateway.FIRST_LINE]
        bind = ("127.0.0.1:0", f"unix:{folder}/socket", *addresses)
        options = ("--backlog", str(MANY), "--trusted-proxies", "127.0.0.1")
        with Busy(mode, tmp_path_factory.mktemp("busy"), *options, bind=bind) as busy:
            busy.path = f"{folder}/socket"
            yield busy


@pytest.fixture
def running(busy: Busy) -> Busy:
    busy.begin()
    return busy


@contextmanager
def held(server: Busy, gate: Path) -> Iterator[None]:
    """Every thread has a request, until the end of this context."""
    threads = 2 if server.mode in ("forking", "threading") else 1
    holding = [server.hold(server.connect(), gate) for _ in range(threads)]
    yield
    # No limit that is asserted: whoever waits has to wait for so long at least.
    time.sleep(NOTICEABLE)
    gate.touch()
    for connection in holding:
        assert connection.response().status == 200


def connections(server: Server, kind: str, count: int) -> list[Connection]:
    made = [server.connect() for _ in range(count)] if kind != "new" else []
    if kind == "kept":
        for connection in made:
            assert connection.request("GET", "/before").status == 200
    elif kind == "idle":
        # The server has found that nothing has come on them yet.
        assert server.get("/before").status == 200
    return made


#: In each mode, a client leaves in one of two ways; in the full level, in both.
each_way_to_leave = pytest.mark.parametrize(
    ("mode", "leave"),
    each_value(DIFFERENT, [Connection.close, Connection.reset]),
    indirect=["mode"],
)


@each_way_to_leave
def test_a_request_of_a_departed_client_is_not_run(
    running: Busy, tmp_path: Path, leave: Callable[[Connection], None]
) -> None:
    count = 40
    for number, kind in enumerate(KINDS, 1):
        made = connections(running, kind, count)
        with held(running, tmp_path / kind):
            for connection in made or [running.connect() for _ in range(count)]:
                connection.send_request("POST", "/work", body=b"x" * 100)
                leave(connection)
        assert running.get("/after").body == b"/after 0\n", kind
        # The workers of `forking` share what waits.
        running.wait_logged(number * count, kind)
    assert not running.has_run("POST /work")
    told = running.log(running.before[0]).count("not run, logged with 499: the client has ")
    assert told == len(KINDS) * count


@pytest.mark.each_mode
def test_who_stays_is_answered(running: Busy, tmp_path: Path) -> None:
    kept = connections(running, "kept", 4)
    with held(running, tmp_path / "gate"):
        staying = [*kept, *(running.connect() for _ in range(4))]
        for number, connection in enumerate(staying):
            connection.send_request("GET", f"/stays/{number}")
            with running.connect() as leaving:
                leaving.send_request("GET", "/leaves")
    for number, connection in enumerate(staying):
        assert connection.response().body == f"/stays/{number} 0\n".encode()
    running.wait_logged(len(staying))
    assert not running.has_run("GET /leaves")


def close_half(connection: Connection, *targets: str) -> None:
    """Ask, and say that this is all, as `nc -N` does.

    At once, so that the server reads the last request with the first.
    """
    heads = [f"GET {target} HTTP/1.1\r\nHost: {connection.host}\r\n\r\n" for target in targets]
    connection.send("".join(heads).encode())
    connection.socket.shutdown(socket.SHUT_WR)


def test_a_closed_half_is_answered_where_the_request_begins_at_once(running: Busy) -> None:
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
    running.wait_logged(waited)


def test_a_closed_half_may_wait_where_that_is_configured(mode: str, tmp_path: Path) -> None:
    with Busy(mode, tmp_path, "--abort-on-close", "off") as running:
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
        running.wait_logged(1)
        assert not running.has_run("GET /resets")
        running.wait_log("ran GET /leaves\n")


@pytest.mark.each_mode
def test_a_request_that_waits_for_its_own_predecessors_is_answered(
    running: Busy, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    connection = running.connect()
    close_half(connection, f"/hold?{gate}", "/second", "/third")
    running.wait_log(f"holds {gate}\n")
    time.sleep(NOTICEABLE)
    gate.touch()
    bodies = [connection.response().body for _ in range(3)]
    assert bodies == [b"/hold 0\n", b"/second 0\n", b"/third 0\n"]


def test_pipelined_requests_of_a_closed_half_may_wait_for_others(tmp_path: Path) -> None:
    """Others have their turn between them, and the client may have nothing more to send."""
    with Busy("single", tmp_path) as running:
        numbers = count()

        def has_waited() -> bool:
            """Whether another request came between them, all of which are answered."""
            number = next(numbers)
            first, other = tmp_path / f"first-{number}", tmp_path / f"other-{number}"
            running.begin()
            with running.connect() as connection, running.connect() as between:
                close_half(connection, f"/hold?{first}", *["/more"] * 250)
                running.wait_log(f"holds {first}\n")
                between.send_request("GET", f"/hold?{other}")
                first.touch()
                running.wait_log(f"holds {other}\n")
                run = running.has_run("GET /more")
                time.sleep(NOTICEABLE)
                other.touch()
                assert between.response().status == 200
                assert [connection.response().status for _ in range(251)] == [200] * 251
            return run < 250

        wait_for(has_waited, "a turn for another request")


def test_a_unix_socket_tells_a_closed_half_from_a_departure(running: Busy, tmp_path: Path) -> None:
    with held(running, tmp_path / "gate"):
        half, leaving = Connection(running.path), Connection(running.path)
        close_half(half, "/half")
        leaving.send_request("GET", "/leaves")
        leaving.close()
    with half:
        assert half.response().body == b"/half 0\n"
    running.wait_logged(1)
    assert not running.has_run("GET /leaves")


def abort(connection: Connection) -> None:
    """Send the record of FastCGI that aborts a request: only there can this be said."""
    connection.send(gateway.record(2, b""))


@pytest.mark.parametrize(
    ("protocol", "leave"),
    [*((protocol, Connection.close) for protocol in gateway.FIRST_LINE), ("fastcgi", abort)],
)
def test_gateways(
    running: Busy, tmp_path: Path, protocol: str, leave: Callable[[Connection], None]
) -> None:
    variables = [(b"REQUEST_METHOD", b"GET"), (b"REQUEST_URI", b"/leaves")]
    variables += [(b"SERVER_PROTOCOL", b"HTTP/1.1"), (b"REMOTE_ADDR", b"192.0.2.1")]
    with held(running, tmp_path / "gate"):
        made = [Connection(("127.0.0.1", running.port_of(protocol))) for _ in range(5)]
        for connection in made:
            connection.send(gateway.pack(protocol, variables))
            leave(connection)
    assert running.get("/after").status == 200
    running.wait_logged(len(made))
    assert not running.has_run("GET /leaves")
    for connection in made:
        connection.close()


@each_way_to_leave
def test_who_leaves_while_the_application_works(
    mode: str, tmp_path: Path, folder: Path, leave: Callable[[Connection], None]
) -> None:
    """Counted and logged with 499, as by nginx; who stays is not."""
    admin = Admin(folder)
    path = folder / "server"
    bind = ("127.0.0.1:0", f"unix:{path}")
    with Busy(mode, tmp_path, *admin.options, bind=bind) as running:
        for number, where in enumerate(("new", "kept", "unix"), 1):
            with Connection(str(path)) if where == "unix" else running.connect() as leaving:
                if where == "kept":
                    assert leaving.request("GET", "/before").status == 200
                gate = tmp_path / where
                running.hold(leaving, gate)
                leave(leaving)
            # So long a request is worth asking the kernel for its client.
            time.sleep(2 * WORTH_ASKING)
            gate.touch()
            running.wait_logged(number, where)
        wait_for(lambda: admin.figures()["departed"] == 3, "the count of those who left")
        wait_for(lambda: admin.figures()["responses"]["4xx"] == 3, "the count of responses")
        with held(running, tmp_path / "other"):
            time.sleep(2 * WORTH_ASKING)
        assert running.get("/after").status == 200
        assert admin.figures()["departed"] == running.logged() == 3


def test_who_leaves_before_anything_can_be_sent(running: Busy, tmp_path: Path) -> None:
    """Noticed when sending fails, however short it was; also without figures."""
    gate = tmp_path / "gate"
    with Connection(running.path) as leaving:
        running.hold(leaving, gate)
    gate.touch()
    running.wait_logged(1)


# Clients that vanish within a request or a response


def descriptors_of(server: Server) -> int:
    """The descriptors that the server and its workers hold."""
    return descriptors(server.process.pid, *children(server.process.pid))


#: Limits that never come: what has vanished must be noticed without them.
PATIENT = ("--header-timeout", "900", "--body-timeout", "900", "--write-timeout", "900")

REQUEST = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50_000


@pytest.mark.parametrize("how", [Connection.close, Connection.reset])
def test_client_vanishes_mid_request(serve: Serve, how: Callable[[Connection], None]) -> None:
    server = serve("tests/apps/echo.py", *PATIENT)
    assert server.get("/").status == 200
    before = descriptors_of(server)
    for length in (0, 1, 20, 60, 1_000, 50_000):
        for _ in range(20):
            connection = server.connect()
            connection.send(REQUEST[:length])
            how(connection)
        assert server.get("/").status == 200
        wait_for(lambda: descriptors_of(server) <= before, f"the end of those of {length}")
    assert "ran POST /x" not in server.log(), "half a request was served"


@pytest.mark.each_mode
@pytest.mark.parametrize("how", [Connection.close, Connection.reset])
def test_client_vanishes_mid_response(serve: Serve, how: Callable[[Connection], None]) -> None:
    server = serve("tests/apps/answers.py", *PATIENT)
    assert server.get("/one").status == 200
    before = descriptors_of(server)
    for read, path in product((0, 1, 100_000), ("/large", "/large_generated")):
        for _ in range(5):
            connection = server.connect()
            # A second request waits behind the first: nobody is left to answer it to.
            connection.send_request("GET", path)
            connection.send_request("GET", path)
            receive(connection, read)
            how(connection)
        assert server.get("/one").body == b"hello"
        wait_for(lambda: descriptors_of(server) <= before, f"the end of those of {path}")


def test_the_log_says_that_a_client_left_before_the_end(serve: Serve) -> None:
    server = serve("tests/apps/faulty.py", *PATIENT, "--log-level", "info")
    for path in ("/endless", "/endless_write"):
        with server.connect() as connection:
            connection.send_request("GET", f"{path}/0.01,1?a")
            assert connection.socket.recv(100_000).startswith(b"HTTP/1.1 200 OK")
        server.wait_log(f" GET {path}/0.01,1?a: the client left before the end of the response\n")
