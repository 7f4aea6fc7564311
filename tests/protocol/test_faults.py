"""Faults at the start and of clients: unusable ports and folders, aborts, stalls, floods."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.support.failure import fails, says
from tests.testkit.client import HANG, BadResponse, Closed
from tests.testkit.process import children, descriptors, files_of_workers
from tests.testkit.server import MODES, Server, wait_for

ECHO = "tests/apps/echo.py"
ANSWERS = "tests/apps/answers.py"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A folder of modules that cannot be served."""
    (tmp_path / "raises.py").write_text("raise LookupError('told so')\n")
    (tmp_path / "typo.py").write_text("def application(environ, start_response:\n")
    (tmp_path / "missing.py").write_text("import no_such_module_at_all\n")
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "empty.py").write_text("application = None\n")
    (tmp_path / "fine.py").write_text("def application(environ, start_response): ...\n")
    return tmp_path


# The application


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("no_such_module:app", "no_such_module"),
        ("no_such_file.py:app", "no_such_file.py"),
        ("raises.py", "told so"),
        ("missing.py", "no_such_module_at_all"),
    ],
)
def test_application_cannot_be_loaded_in_any_mode(
    broken: Path, mode: str, target: str, named: str
) -> None:
    options = ("--bind", "127.0.0.1:0", *MODES[mode])
    assert named in says(4, "serve", target, *options, cwd=broken)


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("typo.py", "typo.py"),
        ("exits.py", "exits.py"),
        ("empty.py", "application"),
        ("fine.py:nothing", "nothing"),
        ("fine:nothing", "nothing"),
        ("dispatch:no_such_folder", "no_such_folder"),
        ("no_such_scheme:x/y", "no_such_scheme"),
    ],
)
def test_application_cannot_be_loaded(broken: Path, target: str, named: str) -> None:
    assert named in says(4, "serve", target, "--bind", "127.0.0.1:0", cwd=broken)


def test_traceback_for_those_who_ask(broken: Path) -> None:
    options = ("--bind", "127.0.0.1:0", "--log-level", "debug")
    code, text = fails("serve", "raises.py", *options, cwd=broken)
    assert code == 4
    assert "Traceback" in text
    assert "LookupError: told so" in text


def test_no_application() -> None:
    assert "TARGET" in says(2, "serve").upper()


# Options and addresses


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--thraeds", "4"), "--threads"),
        (("--threads", "many"), "many"),
        (("--mode", "treading"), "threading"),
        (("--bind", "8080"), "127.0.0.1:8080"),
        (("--access-log", "-", "--access-log-format", "%y"), "%y"),
    ],
)
def test_bad_option(arguments: tuple[str, ...], named: str) -> None:
    assert named in says(2, "serve", ECHO, "--bind", "127.0.0.1:0", *arguments)


def test_bad_file(tmp_path: Path) -> None:
    assert "nowhere.ini" in says(3, "serve", "-c", "nowhere.ini", ECHO)
    path = tmp_path / "poorhttp.ini"
    path.write_text("[http]\nmode = single\nthraeds = 4\n")
    text = says(3, "serve", "-c", str(path), ECHO)
    assert f"{path}:3" in text
    assert "threads" in text


@pytest.mark.parametrize("mode", MODES)
def test_occupied_port(mode: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        assert address in says(5, "serve", ECHO, "--bind", address, *MODES[mode])


def test_address_that_is_not_ours(folder: Path) -> None:
    # 192.0.2.0/24 is for documentation (RFC 5737): no machine has it.
    assert "192.0.2.1" in says(5, "serve", ECHO, "--bind", "192.0.2.1:0")
    path = folder / "no_such_folder" / "socket"
    assert "no_such_folder" in says(5, "serve", ECHO, "--bind", f"unix:{path}")
    assert "fd:99" in says(5, "serve", ECHO, "--bind", "fd:99")


@pytest.mark.parametrize("mode", MODES)
def test_folder_of_temporary_files_that_cannot_be_written(mode: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        path = tmp_path / name
        options = ("--bind", "127.0.0.1:0", "--temp-dir", str(path), *MODES[mode])
        text = says(3, "serve", ECHO, *options)
        assert "temp-dir" in text
        assert str(path) in text
    assert str(path) in says(3, "check", ECHO, "--bind", "127.0.0.1:0", "--temp-dir", str(path))


def test_body_lies_in_the_folder_of_temporary_files(tmp_path: Path) -> None:
    with Server(ECHO, "single", "--temp-dir", str(tmp_path)) as server, server.connect() as client:
        client.send(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 300001\r\n\r\n")
        client.send(b"x" * 300_000)
        wait_for(
            lambda: any(str(tmp_path) in link for link in files_of_workers(server)),
            "a file of the body",
        )
        client.send(b"x")
        assert client.response().status == 200


def test_check_finds_the_same(broken: Path) -> None:
    assert "told so" in says(4, "check", "raises.py", cwd=broken)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        assert address in says(5, "check", "--bind", address, ECHO)


# Clients that vanish


def held(server: Server) -> int:
    """The descriptors that the server and its workers hold."""
    return descriptors(server.process.pid, *children(server.process.pid))


#: Limits that never come: what has vanished must be noticed without them.
PATIENT = ("--header-timeout", "900", "--body-timeout", "900", "--write-timeout", "900")

REQUEST = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50_000


@pytest.mark.threading_only
@pytest.mark.parametrize("length", [0, 1, 20, 60, 1_000, 50_000])
@pytest.mark.parametrize("how", ["close", "reset"])
def test_client_vanishes_mid_request(serve: Serve, length: int, how: str) -> None:
    server = serve(ECHO, *PATIENT)
    assert server.get("/").status == 200
    before = held(server)
    for _ in range(20):
        connection = server.connect()
        connection.send(REQUEST[:length])
        getattr(connection, how)()
    assert server.get("/").status == 200
    wait_for(lambda: held(server) <= before, "as many descriptors as before")
    assert "ran POST /x" not in server.log(), "half a request was served"


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize(
    ("path", "read"),
    [
        (path, read)
        for path in ("/large", "/large_generated", "/many_pieces", "/one")
        for read in (0, 1, 100_000)
        # Of the short answers there are not as many octets.
        if (path, read) != ("/one", 100_000)
    ],
)
def test_client_vanishes_mid_response(serve: Serve, path: str, how: str, read: int) -> None:
    server = serve(ANSWERS, *PATIENT)
    assert server.get("/one").status == 200
    before = held(server)
    for _ in range(5):
        connection = server.connect()
        # A second request waits behind the first: nobody is left to answer it to.
        connection.send_request("GET", path)
        connection.send_request("GET", path)
        left = read
        while left > 0 and (data := connection.socket.recv(min(left, 65_536))):
            left -= len(data)
        getattr(connection, how)()
    assert server.get("/one").body == b"hello"
    wait_for(lambda: held(server) <= before, "as many descriptors as before")
    assert "Traceback" not in server.log()


# Clients that fall silent. Each server has one time limit that is short and others that never come.


@pytest.mark.threading_only
@pytest.mark.parametrize("sent", [b"G", b"GET / HTTP/1.1\r\nHost: a\r\n"])
def test_silent_in_the_head(serve: Serve, sent: bytes) -> None:
    server = serve(ECHO, "--header-timeout", "0.5", "--body-timeout", "900")
    with server.connect() as connection:
        connection.send(sent)
        assert connection.response().status == 408
        assert connection.at_end()


@pytest.mark.threading_only
def test_dripping_head(serve: Serve) -> None:
    """The limit counts from the first octet, however regularly others follow."""
    server = serve(ECHO, "--header-timeout", "0.5", "--body-timeout", "900")
    with server.connect() as connection:
        connection.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Drip: ")
        connection.socket.settimeout(0.02)
        for _ in range(int(HANG / 0.02)):
            try:
                if connection.socket.recv(1, socket.MSG_PEEK):
                    break
            except TimeoutError:
                connection.send(b"x")
        connection.socket.settimeout(HANG)
        assert connection.response().status == 408


@pytest.mark.threading_only
@pytest.mark.parametrize("framing", [b"Content-Length: 10", b"Transfer-Encoding: chunked"])
def test_silent_in_the_body(serve: Serve, framing: bytes) -> None:
    server = serve(ECHO, "--body-timeout", "0.2", "--header-timeout", "900")
    with server.connect() as connection:
        connection.send(b"POST /half HTTP/1.1\r\nHost: a\r\n" + framing + b"\r\n\r\n5\r\nx")
        assert connection.response().status == 408
        assert connection.at_end()
    assert server.get("/").status == 200
    assert "ran POST /half" not in server.log()


@pytest.mark.threading_only
def test_idle_between_requests(serve: Serve) -> None:
    server = serve(ECHO, "--keepalive-timeout", "0.2", "--header-timeout", "900")
    with server.connect() as connection:
        assert connection.request("GET", "/").status == 200
        assert connection.at_end(), "an idle connection is closed without a word"


def test_client_that_does_not_read(serve: Serve) -> None:
    server = serve(ANSWERS, "--write-timeout", "0.2")
    before = held(server)
    connection = server.connect()
    connection.send_request("GET", "/large")
    connection.send_request("GET", "/large")
    # The first octet, so that the connection is known to be in hand; none behind it.
    assert connection.socket.recv(1, socket.MSG_PEEK)
    wait_for(lambda: held(server) <= before, "the end of a connection that is not read")
    # The end of the connection comes before the end of the answer.
    with pytest.raises((BadResponse, Closed)):
        list(map(connection.response, ("GET", "GET")))
    connection.close()
    assert server.get("/one").body == b"hello"
