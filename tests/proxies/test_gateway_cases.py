"""The cases of the gateway protocols over real connections."""

from __future__ import annotations

import gzip
import socket
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.apps.compressed import text
from tests.conftest import Serve
from tests.support.check_each import KeptConnection, by_file, check_each, log_since
from tests.testkit.cases.gateway import (
    FIRST_LINE,
    Case,
    Pair,
    answer,
    answer_in_records,
    pack,
    read_all,
    request_in_records,
)
from tests.testkit.client import Connection, Response
from tests.testkit.server import Server

ALONE = True

ECHO = "tests/apps/echo.py"
#: More than a record of FastCGI holds, and than is kept in memory.
LETTERS = bytes(range(256)) * 4_000
CASES = by_file(read_all())
OPTIONS = (
    *("--trusted-proxies", "127.0.0.1"),
    *(word for protocol in FIRST_LINE for word in ("--bind", f"{protocol}://127.0.0.1:0")),
)


def get(protocol: str, path: str, *more: Pair) -> bytes:
    """A GET as a web server would send it."""
    return pack(protocol, [(b"REQUEST_METHOD", b"GET"), (b"PATH_INFO", path.encode()), *more])


def connect(server: Server, protocol: str) -> Connection:
    """A connection to the listener that speaks this."""
    return Connection(("127.0.0.1", server.port_of(protocol)))


def asked(server: Server, protocol: str, data: bytes) -> Response:
    """The answer to a request on a connection of its own."""
    with connect(server, protocol) as connection:
        connection.send(data)
        return answer(connection.rest(), protocol)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with another one in it."""
    top = tmp_path_factory.mktemp("site")
    (top / "inner").mkdir()
    (top / "inner/index.html").write_bytes(LETTERS)
    return top


@pytest.fixture
def echo(serve: Serve) -> Server:
    return serve(ECHO, *OPTIONS)


def check_case(case: Case, connection: Connection) -> None:
    data = case.send
    # What stands behind a message must never be taken for a request.
    if case.status and len(data) < 70_000:
        data += get(case.protocol, f"/smuggled/{case.name}")
    connection.send(data)
    if case.status == 0:
        connection.socket.shutdown(socket.SHUT_WR)
    said = connection.rest()
    assert said.startswith(case.aside)
    said = said.removeprefix(case.aside)
    if case.status == 0:
        assert said == b""
        return
    response = answer(said, case.protocol)
    assert response.status == case.status, response.body
    if case.reason:
        _, _, reason = response.body.decode().partition(": ")
        assert reason.startswith(case.reason)
        return
    seen = response.json()
    assert {key: seen["environ"].get(key) for key in case.environ} == case.environ
    if case.body is not None:
        assert seen["body"].encode("latin-1") == case.body


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("file", CASES)
def test_cases(serve: Serve, file: str, streams: bool) -> None:
    """Each on a connection of its own: the server closes every one.

    The reactor reads them, in all modes alike; byte by byte, core/http/tests/gateway.rs does. How
    an application receives bodies in each mode stands in tests/protocol/test_http.py.
    """
    app = ("tests/apps/streamed.py:echo", "--stream-request-body", "on") if streams else (ECHO,)
    server = serve(*app, *OPTIONS)

    def check(case: Case) -> None:
        before = server.log_size()
        with connect(server, case.protocol) as connection:
            check_case(case, connection)
        log = log_since(server, before, other)
        assert "/smuggled" not in log
        assert (log.count("ran ") == 1) == (case.status != 200), log

    with KeptConnection(server.connect) as other:
        check_each(CASES[file], check)


@pytest.mark.parametrize("protocol", FIRST_LINE)
def test_what_controls_uwsgi_has_no_effect(echo: Server, protocol: str, tmp_path: Path) -> None:
    """No file is loaded, no variable set."""
    mark = tmp_path / "mark"
    program = tmp_path / "evil.py"
    program.write_text(f"open({str(mark)!r}, 'w')\napplication = None\n")
    controls = {
        "FILE": program,
        "SCRIPT": "evil",
        "MODULE": "evil",
        "CALLABLE": "application",
        "APPID": "/evil",
        "PYHOME": tmp_path,
        "CHDIR": tmp_path,
        "SETENV": f"PYTHONPATH={tmp_path}",
        "TOUCH_RELOAD": program,
    }
    pairs = [(f"UWSGI_{name}".encode(), str(value).encode()) for name, value in controls.items()]
    for _ in range(3):
        environ = asked(echo, protocol, get(protocol, "/", *pairs)).json()["environ"]
        assert not [key for key in environ if key.startswith("UWSGI")]
    assert not mark.exists()
    assert not list(tmp_path.glob("__pycache__"))


def test_fastcgi_connection_that_is_kept(echo: Server) -> None:
    """Requests one behind the other, also those that were sent before an answer had come."""
    variables = [(b"REQUEST_METHOD", b"POST"), (b"REQUEST_URI", b"/a")]
    data = b"".join(
        request_in_records(variables, b"content %d" % number, number=number, keep=number < 5)
        for number in range(1, 6)
    )
    with connect(echo, "fastcgi") as connection:
        connection.send(data)
        rest = connection.rest()
    for number in range(1, 6):
        said, rest = answer_in_records(rest, number)
        assert said.startswith(b"Status: 200 ")
        assert b'"content %d"' % number in said
    assert rest == b""


def test_fastcgi_request_that_is_refused_is_nobody_elses(mode: str, tmp_path: Path) -> None:
    """Who has asked before on the same connection has nothing to do with it."""
    log = tmp_path / "access.log"
    variables = [(b"REQUEST_METHOD", b"GET"), (b"PATH_INFO", b"/")]
    first = request_in_records([*variables, (b"REMOTE_ADDR", b"192.0.2.1")], keep=True)
    # Another version, cut, malformed.
    others = (
        b"\x02",
        request_in_records([], number=2)[:-1],
        request_in_records([(b"REMOTE_ADDR", b"nobody")], number=2),
    )
    with Server(ECHO, mode, *OPTIONS, "--access-log", str(log)) as server:
        for second in others:
            with connect(server, "fastcgi") as connection:
                connection.send(first + second)
                connection.socket.shutdown(socket.SHUT_WR)
                connection.rest()
        # The first may be told of too, by its own name: not run, as its client has left meanwhile.
        refusals = [line for line in server.log().splitlines() if "refused" in line]
    assert refusals
    assert not [line for line in refusals if "192.0.2.1" in line]
    clients = [line.split()[0] for line in log.read_text().splitlines()]
    assert clients.count("192.0.2.1") == len(others)
    assert {*clients} <= {"192.0.2.1", "-"}


def test_fastcgi_end_of_content_that_comes_later(echo: Server) -> None:
    """There is time for it, whether or not the length is said."""
    for length in ([], [(b"CONTENT_LENGTH", b"0")]):
        data = get("fastcgi", "/", *length)
        with connect(echo, "fastcgi") as connection:
            connection.send(data[:-8])
            for _ in range(200):
                echo.get("/between")
            connection.send(data[-8:])
            assert answer(connection.rest(), "fastcgi").status == 200, length


@pytest.mark.parametrize("protocol", FIRST_LINE)
def test_folder_without_its_slash(serve: Serve, protocol: str, site: Path) -> None:
    """Its client finds it below where the web server has mounted us."""
    server = serve(ECHO, *OPTIONS, "--health", "/-", "--static", f"/s={site}")
    for place, location in (
        ([(b"SCRIPT_NAME", b"/a b"), (b"PATH_INFO", b"/s/inner")], "/a%20b/s/inner/"),
        ([(b"SCRIPT_NAME", b"/a"), (b"REQUEST_URI", b"/a/s/inner?b=c")], "/a/s/inner/?b=c"),
        ([(b"PATH_INFO", b"/s/inner")], "/s/inner/"),
    ):
        response = asked(server, protocol, pack(protocol, [(b"REQUEST_METHOD", b"GET"), *place]))
        assert (response.status, response.get("Location")) == (301, location)


@pytest.mark.parametrize("protocol", FIRST_LINE)
def test_file_that_the_application_names(serve: Serve, protocol: str, site: Path) -> None:
    server = serve("tests/apps/deliverer.py", *OPTIONS, "--x-sendfile", str(site))
    for status, part, expected in (
        ("200 OK", "", (200, "OK", LETTERS)),
        ("404 Gone Away", "", (404, "Gone Away", LETTERS)),
        ("200 OK", "bytes=1-3", (206, "Partial Content", LETTERS[1:4])),
    ):
        query = urlencode({"status": status, "header": f"X-Sendfile: {site}/inner/index.html"})
        fields = [(b"QUERY_STRING", query.encode()), (b"HTTP_RANGE", part.encode())]
        response = asked(server, protocol, get(protocol, "/", *fields))
        assert (response.status, response.reason, response.body) == expected


@pytest.mark.parametrize("protocol", FIRST_LINE)
def test_compressed_answers(serve: Serve, protocol: str) -> None:
    """Once, with the field that says so, however the application makes them."""
    server = serve("tests/apps/compressed.py", *OPTIONS, "--compress", "on")
    for shape, size in product(["list", "generator", "write", "one"], [10_000, 1_100_000]):
        query = f"shape={shape}&size={size}".encode()
        fields = [(b"QUERY_STRING", query), (b"HTTP_ACCEPT_ENCODING", b"gzip")]
        response = asked(server, protocol, get(protocol, "/", *fields))
        assert response.get_all("Content-Encoding") == ["gzip"], (shape, size)
        assert "Accept-Encoding" in response.get_all("Vary"), (shape, size)
        assert gzip.decompress(response.body) == text(size), (shape, size)
