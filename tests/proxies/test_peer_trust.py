"""Peer trust: fields of proxies about the client, believed or not."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poorhttp
from poorhttp.errors import ConfigError
from proxy.programs import PROGRAMS
from tests.conftest import Serve
from tests.packages import need
from tests.support.check_each import by_file, check_each
from tests.support.forked_command import run_command
from tests.support.http2_as_http1 import StreamConnection
from tests.support.http2_cases import Meaningless, first_request
from tests.support.proxies import HAPROXY, WebServer, reserve
from tests.testkit.cases.trust import WATCHED, Case, read_all
from tests.testkit.client import Connection, Response
from tests.testkit.server import READY, Server, alone, wait_for

ALONE = True

ECHO = "tests/apps/echo.py"
CASES = read_all()
#: Of version 1, over IPv4.
LINE = b"PROXY TCP4 203.0.113.1 127.0.0.1 4711 443\r\n"
CLIENT = "203.0.113.1"
TRUST = ("--trusted-proxies", "127.0.0.1")
PROXIED = (*TRUST, "--proxy-protocol", "on")
#: A field without what a server refuses.
PLAIN = re.compile(r"[\t -~]*")
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#: The options of servers that cases are about.
PLACES = sorted({case.options for case in CASES})
#: Cases in which the peer is not trusted.
STRANGERS = ("from-stranger", "far-proxy", "preamble-of-stranger-fields")


def has_ipv6() -> bool:
    """Whether this machine has a loopback address of IPv6."""
    with suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


HAS_IPV6 = has_ipv6()


def groups(cases: list[Case]) -> list[object]:
    """The cases of each file, those over IPv6 apart: a machine may be without it."""
    found: list[object] = []
    for file, group in by_file(cases).items():
        for ipv6 in (False, True):
            some = [case for case in group if (":" in case.peer) == ipv6]
            without = pytest.mark.skipif(ipv6 and not HAS_IPV6, reason="this machine has no IPv6")
            if some:
                name = f"{file}-ipv6" if ipv6 else file
                found.append(pytest.param(some, id=name, marks=without))
    return found


class Place:
    """A server that listens in all the ways in which cases connect."""

    def __init__(self, server: Server, path: str) -> None:
        self.server, self.path = server, path
        self.port = int((re.findall(r"\[::1\]:(\d+)", server.urls) or ["0"])[0])

    def connect(self, peer: str) -> Connection:
        """Connect as somebody."""
        if peer == "unix":
            return Connection(self.path)
        if ":" in peer:
            return Connection((peer, self.port), peer)
        return Connection(("127.0.0.1", self.server.port), peer)

    def plain(self, peer: str, connection: Connection) -> dict[str, str | None]:
        """What the application finds if nobody says anything."""
        plain: dict[str, str | None] = dict.fromkeys(WATCHED)
        plain |= {"wsgi.url_scheme": "http", "HTTP_HOST": "a", "SCRIPT_NAME": "", "PATH_INFO": "/"}
        if peer == "unix":
            address, port, server = "", "", ("localhost", "80")
        else:
            address, port = peer, str(connection.socket.getsockname()[1])
            there = connection.socket.getpeername()
            server = (there[0], str(there[1]))
        plain |= {"REMOTE_ADDR": address, "REMOTE_PORT": port}
        return plain | {"SERVER_NAME": server[0], "SERVER_PORT": server[1]}


Places = Callable[[Case], Place]


@pytest.fixture(scope="module")
def places(serve: Serve) -> Iterator[Places]:
    """The place that a case is about."""
    with TemporaryDirectory() as folder:

        def place(case: Case) -> Place:
            path = f"{folder}/{PLACES.index(case.options)}"
            bind = ("127.0.0.1:0", f"unix:{path}", *(["[::1]:0"] if HAS_IPV6 else []))
            return Place(serve(ECHO, "--http2=on", *case.options, bind=bind), path)

        yield place


def environ_of(response: Response) -> dict[str, str]:
    assert response.status == 200, response.body
    environ: dict[str, str] = response.json()["environ"]
    return environ


def client_of(connection: Connection) -> str:
    """Whom the application takes for the client behind a preamble."""
    connection.send(LINE + GET)
    return environ_of(connection.response())["REMOTE_ADDR"]


def check(environ: dict[str, str], expected: dict[str, str | None]) -> None:
    assert {key: environ.get(key) for key in expected} == expected


def check_refusal(case: Case, response: Response) -> None:
    assert response.status == int(case.refusal[:3])
    assert response.body.decode().endswith(f": {case.refusal[4:]}\n")


def refused(place: Place, connection: Connection, case: Case, before: int) -> None:
    """Check that a case is refused, once, in the answer and in the log."""
    check_refusal(case, connection.response())
    assert connection.at_end()
    lines = place.server.log(before).splitlines()
    (line,) = [line for line in lines if "refused with" in line]
    assert line.endswith(f"refused with {case.refusal[:3]} ({case.refusal[4:]})")
    assert not [line for line in lines if line.startswith("ran ")]


def check_case(case: Case, place: Place) -> None:
    before = place.server.log_size()
    with place.connect(case.peer) as connection:
        connection.send(case.preamble + case.request)
        if case.refusal:
            refused(place, connection, case, before)
            return
        plain = place.plain(case.peer, connection)
        expected = case.expected(plain)
        first = environ_of(connection.response())
        check(first, expected)
        if b"HTTP/1.0" in case.request:
            return
        # The same head is remembered; what is said by another one must not be, nor forgotten.
        for _ in range(3):
            connection.send(case.request)
            assert environ_of(connection.response()) == first
        connection.send(GET)
        check(environ_of(connection.response()), {"HTTP_HOST": "a"} if case.preamble else plain)
        connection.send(case.request)
        assert environ_of(connection.response()) == first


@pytest.mark.parametrize("cases", groups(CASES))
def test_cases(places: Places, cases: list[Case]) -> None:
    """Each on a connection of its own: who connects, and what is said first, is of that.

    The reactor decides it, in all modes alike; `test_each_request_has_its_own_client` asks in each.
    Octet by octet, core/http/tests/trust_cases.rs reads them.
    """
    check_each(cases, lambda case: check_case(case, places(case)))


def has_a_meaning(case: Case) -> bool:
    """Whether a case is about a request of HTTP/2, and not about what comes before it."""
    try:
        first_request(case.request)
    except Meaningless:
        return False
    return case.file == "forwarded" or not case.refusal


@pytest.mark.parametrize("cases", groups([case for case in CASES if has_a_meaning(case)]))
def test_cases_over_http2(places: Places, cases: list[Case]) -> None:
    def check_case(case: Case) -> None:
        place = places(case)
        with (
            place.connect(case.peer) as plain_connection,
            StreamConnection(plain_connection, case.preamble) as connection,
        ):
            connection.send(case.request)
            response = connection.response()
            if case.refusal:
                check_refusal(case, response)
                return
            first = environ_of(response)
            check(first, case.expected(place.plain(case.peer, connection)))
            # What is said on one stream is not said on another.
            connection.send(GET + case.request)
            assert environ_of(connection.response())["HTTP_HOST"] == "a"
            assert environ_of(connection.response()) == first

    check_each(cases, check_case)


#: What is said in the cases, and as much again in which any name comes with any value.
FIELDS = [field for case in CASES for field in case.fields if PLAIN.fullmatch(field)]
NAMES, VALUES = (sorted({field.split(":", 1)[part] for field in FIELDS}) for part in (0, 1))
SAID = st.sampled_from(FIELDS) | st.builds(
    "{}:{}".format, st.sampled_from(NAMES), st.sampled_from(VALUES)
)


@pytest.mark.parametrize("name", STRANGERS)
@settings(max_examples=settings().max_examples // 4)
@given(st.lists(st.lists(SAID, max_size=6), min_size=1, max_size=8))
def test_whatever_a_stranger_says_changes_nothing(
    places: Places, name: str, requests: list[list[str]]
) -> None:
    """Fields of all cases, in any combination, on connections that live on."""
    (stranger,) = (case for case in CASES if case.name == name)
    place = places(stranger)
    with place.connect(stranger.peer) as connection:
        plain = place.plain(stranger.peer, connection) | {"HTTP_HOST": "test"}
        for said in requests:
            environ = environ_of(connection.request("GET", "/", *said))
            check(environ, plain)
            assert not [key for key in environ if "FORWARDED" in key]


@pytest.mark.each_mode
def test_each_request_has_its_own_client(mode: str, tmp_path: Path) -> None:
    """Also when one head is remembered, and not the others between its repetitions."""
    log = tmp_path / "access.log"
    options = ("--access-log", str(log), "--access-log-format", "%h %{X-Forwarded-For}i")
    with (
        Server(ECHO, mode, *TRUST, *options, *alone(mode)) as server,
        server.connect() as connection,
    ):
        for number in [*range(12)] * 3:
            said = f"X-Forwarded-For: 203.0.113.{number}"
            environ = environ_of(connection.request("GET", "/", said))
            assert environ["REMOTE_ADDR"] == f"203.0.113.{number}"
    # The environ is remembered with its head; whom the log names must not be the one before.
    assert log.read_text().splitlines() == [f"203.0.113.{n} 203.0.113.{n}" for n in range(12)] * 3


def test_access_log(mode: str, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    form = ("--access-log-format", "%h|%a|%{X-Forwarded-For}i|%>s")
    with Server(ECHO, mode, *TRUST, "--access-log", str(log), *form, *alone(mode)) as at:
        with at.connect() as connection:
            for said in ("203.0.113.1:81", "203.0.113.1:81", "unknown", "", "::ffff:203.0.113.2"):
                connection.request("GET", "/", *([f"X-Forwarded-For: {said}"] if said else []))
            assert connection.request("GET", "/", "X-Forwarded-For: a").status == 400
        with Connection(("127.0.0.1", at.port), "127.0.0.2") as connection:
            connection.request("GET", "/", "X-Forwarded-For: 203.0.113.1")
    assert sorted(log.read_text().splitlines()) == [
        "-|-|unknown|200",
        "127.0.0.1|127.0.0.1|-|200",
        # What is malformed is not believed, and there is no head that it belongs to.
        "127.0.0.1|127.0.0.1|-|400",
        "127.0.0.2|127.0.0.2|203.0.113.1|200",
        "203.0.113.1|203.0.113.1|203.0.113.1:81|200",
        "203.0.113.1|203.0.113.1|203.0.113.1:81|200",
        "203.0.113.2|203.0.113.2|::ffff:203.0.113.2|200",
    ]


def test_error_log_names_the_client(serve: Serve) -> None:
    server = serve(ECHO, *TRUST, "--max-body", "5")
    for name in ("203.0.113.1", "[2001:db8::1]:81", "2001:db8::2"):
        with server.connect() as connection:
            chunked = "Transfer-Encoding: chunked"
            connection.send_request("POST", "/", chunked, f"X-Forwarded-For: {name}")
            connection.send(b"6\r\nabcdef\r\n0\r\n\r\n")
            assert connection.response().status == 413
        server.wait_log(f" of {name}: refused with 413")
    # What was said of a request is not true of the one behind it.
    before = server.log_size()
    with server.connect() as connection:
        ours = connection.socket.getsockname()[1]
        connection.request("GET", "/", "X-Forwarded-For: 203.0.113.1")
        connection.send(b"nonsense\r\n\r\n")
        assert connection.response().status == 400
    server.wait_log(f" of 127.0.0.1:{ours}: refused with 400")
    assert "203.0.113.1" not in server.log(before)


def test_hosts_and_folders(mode: str, tmp_path: Path) -> None:
    """Applications and published folders are chosen by the host that the client has asked for."""
    for name in ("ours", "theirs"):
        (tmp_path / name / "below").mkdir(parents=True)
        (tmp_path / name / "name.txt").write_text(name)
        (tmp_path / name / "below" / "index.html").write_text("below")
    (tmp_path / "x.ini").write_text(
        f"[http]\ntarget = {ECHO}\nstatic = /files={tmp_path}/ours\n"
        f"[host:a.example]\nstatic = /files={tmp_path}/theirs\nmount = /app={ECHO}\n"
    )
    config = ("-c", str(tmp_path / "x.ini"))
    with Server(ECHO, mode, *config, *TRUST, *alone(mode)) as server:
        said = ("X-Forwarded-Host: A.example:8080", 'Forwarded: host="a.example"')
        with server.connect() as connection:
            for host in said * 3:
                assert connection.request("GET", "/files/name.txt", host).body == b"theirs"
                assert connection.request("GET", "/files/name.txt").body == b"ours"
                for outer in ("", "/outer"):
                    fields = [host, *([f"X-Forwarded-Prefix: {outer}"] if outer else [])]
                    environ = environ_of(connection.request("GET", "/app/x", *fields))
                    assert environ["SCRIPT_NAME"] == f"{outer}/app"
                    assert environ["PATH_INFO"] == "/x"
        for prefix in ("", "/caf%C3%A9"):
            fields = [f"X-Forwarded-Prefix: {prefix}/"] if prefix else []
            found = server.get("/files/below", *fields).get("Location")
            assert found == f"{prefix}/files/below/"
        with Connection(("127.0.0.1", server.port), "127.0.0.2") as connection:
            assert connection.request("GET", "/files/name.txt", said[0]).body == b"ours"
            assert environ_of(connection.request("GET", "/app/x", said[0]))["SCRIPT_NAME"] == ""


# The PROXY protocol on a connection


@pytest.fixture
def proxied(places: Places) -> Server:
    return places(next(case for case in CASES if case.options == PROXIED)).server


def test_many_requests_behind_a_preamble(proxied: Server) -> None:
    """Pipelined, with bodies, all in one read; and more of them later."""
    post = b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    with proxied.connect() as connection:
        connection.send(LINE + b"".join(post % number for number in range(20)))
        for number in range(40):
            if number == 20:
                connection.send(b"".join(post % number for number in range(20, 40)))
            answer = connection.response().json()
            assert (answer["environ"]["PATH_INFO"], answer["body"]) == (f"/{number}", "hello")
            assert answer["environ"]["REMOTE_ADDR"] == CLIENT
            assert answer["environ"]["REMOTE_PORT"] == "4711"


def test_a_preamble_stands_alone_before_the_first_request(proxied: Server) -> None:
    """It may end early; the request may come later, and another preamble may not."""
    with proxied.connect() as connection:
        connection.send(LINE[:20])
        connection.socket.shutdown(socket.SHUT_WR)
        assert connection.at_end()
    with proxied.connect() as connection:
        connection.send(LINE)
        # By the answer to another connection it has usually been read.
        with proxied.connect() as other:
            assert client_of(other) == CLIENT
        connection.send(GET)
        assert environ_of(connection.response())["REMOTE_ADDR"] == CLIENT
        connection.send(LINE)
        assert connection.response().status == 400
        assert connection.at_end()


@pytest.mark.parametrize("part", [b"", LINE[:20], b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xcb"])
def test_a_preamble_has_the_time_of_a_head(serve: Serve, part: bytes) -> None:
    server = serve(ECHO, *PROXIED, "--header-timeout", "0.2")
    with server.connect() as connection:
        connection.send(part)
        if part:
            assert connection.response().status == 408
        assert connection.at_end()


def test_only_addresses_that_declare_it(mode: str, folder: Path) -> None:
    path = folder / "socket"
    options = ("--trusted-proxies", "127.0.0.1 unix", "--proxy-protocol", f"unix:{path}")
    with Server(ECHO, mode, *options, bind=("127.0.0.1:0", f"unix:{path}")) as server:
        assert server.get("/").status == 200
        with Connection(str(path)) as connection:
            assert client_of(connection) == CLIENT
        with Connection(str(path)) as connection:
            connection.send(GET)
            assert connection.response().status == 400


def test_a_reload_declares_it(mode: str, tmp_path: Path) -> None:
    """The sockets stay as they are; what is spoken there does not."""
    text = f"[http]\ntarget = {Path(ECHO).absolute()}\ntrusted_proxies = 127.0.0.1\n"
    config = tmp_path / "x.ini"
    config.write_text(text)
    with Server(ECHO, mode, "-c", str(config)) as server:
        assert server.get("/").status == 200
        config.write_text(f"{text}proxy_protocol = on\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded: the new version serves")
        with server.connect() as connection:
            assert client_of(connection) == CLIENT
        config.write_text(text)
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded: the new version serves", 2)
        assert server.get("/").status == 200


#: A configuration of HAProxy that names its clients before it speaks HTTP/2.
HTTP2_PROXIED = """{defaults}
frontend all
    bind 127.0.0.1:{port}
    default_backend server
backend server
    http-reuse always
    server only 127.0.0.1:{behind} proto h2 send-proxy-v2
"""


def test_the_proxy_protocol_before_http2(tmp_path: Path) -> None:
    """HAProxy has a connection for each client address."""
    need("haproxy")
    config = tmp_path / "haproxy.cfg"
    with reserve() as reserved, Server(ECHO, "threading", *PROXIED) as server:
        port: int = reserved.getsockname()[1]
        config.write_text(HTTP2_PROXIED.format(defaults=HAPROXY, port=port, behind=server.port))
        words = (PROGRAMS["haproxy"].path(), "-db", "-f", str(config))
        with WebServer(*words, reserved=[reserved]) as haproxy:
            wait_for(haproxy.is_listening, "HAProxy")
            for source in ("127.0.0.2", "127.0.0.3", "127.0.0.2"):
                with Connection(("127.0.0.1", port), source) as connection:
                    for _ in range(3):
                        field = "X-Forwarded-For: 192.0.2.66"
                        environ = environ_of(connection.request("GET", "/", field))
                        assert environ["SERVER_PROTOCOL"] == "HTTP/2"
                        assert environ["REMOTE_ADDR"] == source


# What cannot be


def test_a_gateway_that_is_not_trusted(serve: Serve) -> None:
    server = serve(ECHO, "--trusted-proxies=192.0.2.1", bind=("uwsgi://127.0.0.1:0",))
    with Connection(("127.0.0.1", server.port_of("uwsgi"))) as connection:
        connection.send(b"\0\0\0\0")
        assert b"403" in connection.rest().split(b"\r\n")[0]
    server.wait_log("refused with 403 (an untrusted gateway)")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--proxy-protocol=on", "only trusted_proxies may speak the PROXY protocol"),
        (
            "--proxy-protocol=127.0.0.1:1 --trusted-proxies=::1",
            '"127.0.0.1:1" is not one of the addresses of bind; write one of 127.0.0.1:0, or on',
        ),
        (
            "--proxy-protocol=on,127.0.0.1:0 --trusted-proxies=::1",
            "write on, or addresses, and not both",
        ),
        (
            "--proxy-protocol=uwsgi://127.0.0.1:0 --bind=uwsgi://127.0.0.1:0 --trusted-proxies=::1",
            "in uwsgi, the web server names the client without it",
        ),
        (
            "tcp:tests/apps/plain.py:handler --proxy-protocol=on --trusted-proxies=::1",
            "reads its connections itself",
        ),
    ],
)
def test_what_is_no_configuration(words: str, complaint: str) -> None:
    target = [] if words.startswith("tcp:") else [ECHO]
    # First without a server, which would not end where it has no complaint.
    for what in ("check", "serve"):
        done = run_command(what, *target, "--bind", "127.0.0.1:0", *words.split())
        assert done.returncode == 3
        assert "--proxy-protocol: " in done.stderr
        assert complaint in done.stderr
        assert not READY.search(done.stderr)


def test_the_library_hears_proxies() -> None:
    with pytest.raises(ConfigError, match="only trusted_proxies may speak"):
        poorhttp.Server(print, proxy_protocol="on")  # type: ignore[arg-type]

    def application(environ: dict[str, str], start_response: object) -> list[bytes]:
        start_response("200 OK", [])  # type: ignore[operator]
        return [environ["REMOTE_ADDR"].encode()]

    with poorhttp.Server(application, trusted_proxies="127.0.0.1") as server:
        port = int(server.url.rpartition(":")[2])
        with Connection(("127.0.0.1", port)) as connection:
            response = connection.request("GET", "/", f"X-Forwarded-For: {CLIENT}")
            assert response.body == CLIENT.encode()
