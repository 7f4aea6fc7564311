"""The configurations of proxy/: `balanced`, `site`, `http2` and `gateway` of each web server."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from proxy.programs import PROGRAMS
from tests.support.proxies import APP, TRUST, Pair, Proxy, check_client, check_hints
from tests.testkit.cases.gateway import FIRST_LINE
from tests.testkit.client import Connection, chunked, receive, receive_until
from tests.testkit.server import Server, wait_for

EACH = [(name, case) for name, program in PROGRAMS.items() for case in program.cases()]
BALANCED, HTTP2, GATEWAYS = (
    [each for each in EACH if each[1] == case] for case in ("balanced", "http2", "gateway")
)

#: More of them than a server can have requests in hand.
CROWD = 24

#: What asks for a WebSocket.
WEBSOCKET = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)

#: In the folders of files, those for everybody and those that the application hands out.
PUBLIC, SECRET = b"for everybody\n", b"for those whom the application lets\n"


def of(configurations: list[tuple[str, str]]) -> pytest.MarkDecorator:
    """Runs a test with these configurations instead of all."""
    return pytest.mark.parametrize("configuration", configurations, ids="-".join, indirect=True)


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair(APP) as pair:
        yield pair


@pytest.fixture(scope="module")
def sockets() -> Iterator[Path]:
    """A folder for sockets, with a short name."""
    with TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture(scope="module")
def servers(sockets: Path) -> Iterator[dict[str, Server]]:
    """The server behind each kind of configuration but `balanced`; some are at sockets."""
    gateways = [f"{protocol}+unix:{sockets}/{protocol}.sock" for protocol in FIRST_LINE]
    proxied = f"unix:{sockets}/proxied.sock"
    started = {
        "http2": ((), ["127.0.0.1:0"]),
        "site": (TRUST, [f"unix:{sockets}/poorhttp.sock"]),
        "gateway": ((*TRUST, "--proxy-protocol", proxied), [*gateways, proxied]),
    }
    with ExitStack() as stack:
        yield {
            case: stack.enter_context(
                Server(APP, "threading", "-c", f"proxy/{case}.ini", *options, bind=tuple(bind))
            )
            for case, (options, bind) in started.items()
        }


@pytest.fixture(scope="module", params=EACH, ids="-".join)
def configuration(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The name of a program, and of one of its configurations."""
    name, case = request.param
    return name, case


@pytest.fixture(scope="module")
def proxy(
    configuration: tuple[str, str], pair: Pair, servers: dict[str, Server], sockets: Path
) -> Iterator[Proxy]:
    name, case = configuration
    ports = {"balanced": pair.ports, "http2": [servers["http2"].port]}
    with TemporaryDirectory() as place:
        folder = Path(place)
        for each in sockets.iterdir():
            (folder / each.name).symlink_to(each)
        for kind, content in (("static", PUBLIC), ("downloads/files", SECRET)):
            (folder / kind).mkdir(parents=True)
            (folder / kind / "file.txt").write_bytes(content)
        with Proxy(name, case, folder, ports.get(case, ())) as proxy:
            yield proxy.wait_listening()


def test_pages(proxy: Proxy, pair: Pair) -> None:
    for port in proxy.ports:
        with proxy.connect(port) as connection:
            for path in ("/light", "/heavy", "/light?a=b%20c&d"):
                direct, response = pair.servers[0].get(path), connection.request("GET", path)
                # The heavy page has digests of the time.
                times = rb"\d\d:\d\d:\d\d|[0-9a-f]{32,}"
                bodies = [re.sub(times, b"a time", got.body) for got in (response, direct)]
                assert (response.status, bodies[0]) == (200, bodies[1])
                assert len(response.body) == len(direct.body)
                assert response.get("Content-Type") == direct.get("Content-Type")
                head = connection.request("HEAD", path)
                assert (head.status, head.body) == (200, b"")
            assert connection.request("GET", "/nowhere").status == 404


def test_client_address(proxy: Proxy) -> None:
    for port in proxy.ports:
        check_client(proxy, port, "https" if proxy.secure else "http")


def test_uploads(proxy: Proxy, configuration: tuple[str, str]) -> None:
    protocol = "HTTP/2" if configuration in HTTP2 else "HTTP/1.1"
    for port in proxy.ports:
        with proxy.connect(port) as connection:
            for size in (0, 1, 10_000, 5_000_000):
                body = (bytes(range(251)) * (size // 251 + 1))[:size]
                target = "/echo/p%C3%A9%20th?q=%20"
                answer = connection.request("POST", target, body=body).json()
                assert answer["body"].encode("latin-1") == body, size
                environ = answer["environ"]
                assert environ["PATH_INFO"].encode("latin-1").decode() == "/echo/pé th"
                assert environ["QUERY_STRING"] == "q=%20"
                assert environ["REMOTE_ADDR"] == "127.0.0.1"
                assert environ["SERVER_PROTOCOL"] == protocol
                assert environ.get("CONTENT_LENGTH", "0") == str(size)
            connection.send_request("POST", "/echo", "Transfer-Encoding: chunked")
            connection.send(chunked(*[b"hello"] * 1_000))
            response = connection.response()
            if configuration == ("apache2", "gateway") and port != proxy.ports[2]:
                # In uwsgi and SCGI it would have to say the length, which it does not know.
                assert response.status == 411
                continue
            told = response.json()
            assert told["body"] == "hello" * 1_000
            if configuration in GATEWAYS:
                assert told["environ"]["CONTENT_LENGTH"] == "5000"
                assert "HTTP_TRANSFER_ENCODING" not in told["environ"]


# Caddy passes on what comes until it is too much.
@of([each for each in BALANCED if each[0] != "caddy"])
def test_what_is_too_large_is_refused_before_it_is_sent(proxy: Proxy) -> None:
    """The limit of each configuration is that of the server behind."""
    with proxy.connect() as connection:
        connection.send_request("POST", "/echo", f"Content-Length: {2**30 + 1}")
        assert connection.response().status == 413


@of(BALANCED + HTTP2)
def test_pieces_arrive_one_by_one(proxy: Proxy, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with proxy.connect() as connection:
        connection.send_request("GET", f"/pieces?{gate}")
        assert b"second\n" not in receive_until(connection, b"first\n")
        gate.touch()
        receive_until(connection, b"second\n")


@pytest.mark.parametrize(("name", "case"), BALANCED + HTTP2)
def test_early_hints(name: str, case: str, tmp_path: Path) -> None:
    """nginx before 1.29 takes a 103 for the final response (docs/guides/early-hints.md)."""
    options = ("-c", f"proxy/{case}.ini", "--early-hints", "off" if name == "nginx" else "on")
    with Server("tests/apps/hinting.py", "threading", *options) as server:
        behind = [server.port] * len(PROGRAMS[name].ports(case)[1:])
        with Proxy(name, case, tmp_path, behind) as proxy:
            # Apache has none from HTTP/2 for clients of HTTP/1.
            passed = name != "nginx" and (name, case) != ("apache2", "http2")
            check_hints(proxy.wait_listening(), passed=passed)


# Two servers


def others_are_answered(proxy: Proxy, pair: Pair) -> None:
    """Each of the servers answers others, and has nothing in hand."""
    for server in pair.servers:
        assert server.get("/light").status == 200
    with proxy.connect() as connection:
        for _ in range(10):
            assert connection.request("GET", "/light").status == 200


@of(BALANCED)
def test_slow_clients_occupy_no_server(proxy: Proxy, pair: Pair) -> None:
    """Neither while they send, nor while they do not read."""
    sending, reading = ([proxy.connect() for _ in range(CROWD)] for _ in range(2))
    for connection in sending:
        connection.send_request("POST", "/echo/slow", "Content-Length: 1000")
        connection.send(b"x" * 500)
    others_are_answered(proxy, pair)
    for connection in sending:
        connection.send_slowly(b"y" * 500)
        assert connection.response().json()["body"] == "x" * 500 + "y" * 500
        connection.close()
    for connection in reading:
        connection.send_request("GET", "/large?4000000")
    others_are_answered(proxy, pair)
    for connection in reading:
        assert len(connection.response().body) == 4_000_000
        connection.close()


@of(BALANCED)
def test_keep_alive(proxy: Proxy, pair: Pair) -> None:
    """Many requests on one connection, of which the servers hear on few, or on many."""
    name = proxy.program.name
    with proxy.connect() as one, proxy.connect() as two:
        for number in range(50):
            one.send_request("GET", f"/echo/{name}/{number}")
            two.send_request("GET", f"/echo/{name}/{number}")
            for connection in (one, two):
                environ = connection.response().json()["environ"]
                assert environ["PATH_INFO"] == f"/echo/{name}/{number}"
    count = pair.connections(f"/echo/{name}/", 100)
    # lighttpd uses none twice.
    assert (count == 100) if name == "lighttpd" else (count <= 8), count


@of(BALANCED)
def test_each_server_has_its_share(proxy: Proxy, pair: Pair, tmp_path: Path) -> None:
    """While one has a request in hand, the other is asked."""
    gate = tmp_path / "gate"

    def busy() -> list[Server]:
        return [server for server in pair.servers if f"entered {gate}\n" in server.log()]

    with proxy.connect() as one, proxy.connect() as two:
        one.send_request("GET", f"/wait?{gate}")
        wait_for(busy, "a request in hand")
        (other,) = set(pair.servers) - set(busy())
        for number in range(10):
            assert two.request("GET", f"/echo/share/{number}").status == 200
            assert f"/echo/share/{number}\n" in other.log()
        gate.touch()
        assert one.response().json() == "waited"


@of(BALANCED)
def test_upgrade(proxy: Proxy) -> None:
    """The server is asked for a WebSocket, and for no other protocol; its answer comes back."""
    with proxy.connect() as connection:
        for protocol in ("websocket", "websocket", "h2c"):
            fields = (f"Upgrade: {protocol}", *WEBSOCKET[1:])
            environ = connection.request("GET", "/echo", *fields).json()["environ"]
            if protocol == "websocket":
                assert environ["HTTP_UPGRADE"] == "websocket"
                assert "upgrade" in environ["HTTP_CONNECTION"].lower()
                assert environ["HTTP_SEC_WEBSOCKET_KEY"] == "dGhlIHNhbXBsZSBub25jZQ=="
            else:
                assert "HTTP_UPGRADE" not in environ


@pytest.fixture(scope="module")
def tunnel() -> Iterator[Server]:
    with Server("tcp:tests.apps.tunnel:handler") as server:
        yield server


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_follows_an_upgrade(name: str, tunnel: Server, tmp_path: Path) -> None:
    """Octets go to and fro, as they come, until one end closes.

    What applications send over it stands in tests/modes/test_websocket_libraries.py.
    """
    with (
        Proxy(name, "balanced", tmp_path, [tunnel.port] * 2) as proxy,
        proxy.wait_listening().connect() as connection,
    ):
        connection.send_request("GET", "/", *WEBSOCKET)
        assert connection.interim() == 101
        for number in (0, 1, 10, 1_000, 20_000):
            message = f"{number}\n".encode() * (1 + number)
            connection.send(message)
            assert receive(connection, len(message)) == message
        connection.socket.shutdown(socket.SHUT_WR)
        assert connection.at_end()


# One server


@of(HTTP2)
def test_requests_beside_each_other(
    proxy: Proxy, servers: dict[str, Server], tmp_path: Path
) -> None:
    gates = [tmp_path / str(number) for number in range(5)]
    asked: list[tuple[Path, Connection]] = [(gate, proxy.connect()) for gate in gates]
    for gate, connection in asked:
        connection.send_request("GET", f"/wait?{gate}")
    for gate in gates:
        servers["http2"].wait_log(f"entered {gate}\n")
    for gate, connection in reversed(asked):
        gate.touch()
        assert connection.response().json() == "waited"
        connection.close()


#: HAProxy has no files.
with_files = of([("lighttpd", "site"), ("nginx", "site")])


@with_files
def test_files(proxy: Proxy, servers: dict[str, Server]) -> None:
    """The server does not hear of them."""
    before = servers["site"].log()
    with proxy.connect() as connection:
        answer = connection.request("GET", "/static/file.txt")
        assert (answer.status, answer.body) == (200, PUBLIC)
        assert (answer.get("Content-Type") or "").startswith("text/plain")
        etag = answer.get("ETag")
        again = connection.request("GET", "/static/file.txt", f"If-None-Match: {etag}")
        assert again.status == 304
        assert connection.request("GET", "/static/nothing.txt").status == 404
        assert connection.request("GET", "/static/../site.pem.key").status in (400, 404)
    assert servers["site"].log() == before


@with_files
def test_the_application_names_a_file(proxy: Proxy) -> None:
    """It decides, and the proxy sends; nobody else can have the file."""
    if proxy.program.name == "nginx":
        name, other = "/accel?/protected/file.txt", "/accel?/protected/../site.pem.key"
    else:
        folder = f"/sendfile?{proxy.folder}"
        name, other = f"{folder}/downloads/files/file.txt", f"{folder}/site.pem.key"
    with proxy.connect() as connection:
        answer = connection.request("GET", name)
        assert (answer.status, answer.body) == (200, SECRET)
        assert not answer.get_all("X-Sendfile")
        assert not answer.get_all("X-Accel-Redirect")
        part = connection.request("GET", name, "Range: bytes=4-8")
        assert (part.status, part.body) == (206, SECRET[4:9])
    with proxy.connect() as connection:
        assert connection.request("GET", "/protected/file.txt").status == 404
    with proxy.connect() as connection:
        assert connection.request("GET", other).status >= 400
