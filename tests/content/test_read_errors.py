"""Files that cannot be read while they are sent: the log has the error, and blames no client."""

from __future__ import annotations

import errno
import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.apps.unreadable import NUMBERS
from tests.support.certificate import certificate
from tests.support.tls_client import BIND, connected, write
from tests.testkit.client import BadResponse, Closed
from tests.testkit.process import files_of_workers, opened
from tests.testkit.server import Server, alone, wait_for

# The core sends these files, in all modes alike.
pytestmark = pytest.mark.skipif(
    platform.machine() not in NUMBERS, reason="other numbers of system calls"
)

#: Errors of a disk and of a file server.
ERRORS = {"EIO": "Input/output error", "ESTALE": "Stale file handle"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "large.bin"
    path.write_bytes(b"0123456789" * 100_000)
    (tmp_path / "small.txt").write_bytes(b"small")
    return path


def serving(file: Path, mode: str, failing: str, error: str, *more: str, **kw: Any) -> Server:
    """A server of a file, in which a system call fails with an error."""
    words = ("--static", f"/static={file.parent}", "--x-sendfile", str(file.parent))
    env = {"FAILING": failing, "ERRNO": str(getattr(errno, error)), "FILE": str(file)}
    return Server(
        "tests/apps/unreadable.py",
        mode,
        *words,
        "--log-level=debug",
        *alone(mode),
        *more,
        env=env,
        **kw,
    )


def logged(server: Server, what: str) -> str:
    """The line of the error log with these words; no other line is about a client that has left."""
    line = server.wait_line(re.compile(f".*{re.escape(what)}.*\n"))
    assert "the client" not in server.log()
    return line[0]


@pytest.mark.parametrize("error", ERRORS)
def test_a_file_that_cannot_be_read_any_more(mode: str, file: Path, error: str) -> None:
    access = file.parent / "access.log"
    words = ("--access-log", str(access), "--temp-dir", str(file.parent))
    with serving(file, mode, "sendfile", error, *words) as server:
        for number, path in enumerate(("/static/large.bin", "/named", "/wrapped"), 1):
            with server.connect() as connection, pytest.raises((BadResponse, Closed)):
                connection.request("GET", path)
            said = f'the response is cut short: "{file}" cannot be read: {ERRORS[error]}'
            server.wait_log(said, number)
            assert f"(os error {getattr(errno, error)})" in logged(server, said)
        # Also one in a temporary file, which waits there for a slow client.
        its = "the response is cut short: its temporary file cannot be read:"
        with server.connect() as connection:
            connection.send_request("GET", "/large")
            # It has no name in its folder.
            wait_for(
                lambda: (
                    f"{file.parent}/#"
                    in str([opened(server.process.pid), files_of_workers(server)])
                    or its in server.log()
                ),
                "the temporary file",
            )
            with pytest.raises((BadResponse, Closed)):
                connection.response()
        logged(server, f"{its} {ERRORS[error]}")
        assert server.get("/").body == b"other"
        wait_for(lambda: access.read_text().count("\n") == 5, "the lines of the access log")
        assert '" 499 ' not in access.read_text()


def test_a_client_that_leaves_is_no_fault_of_the_file(mode: str, file: Path) -> None:
    """Though sendfile(2) reports that as well."""
    with serving(file, mode, "sendfile", "EPIPE") as server:
        with server.connect() as connection, pytest.raises((BadResponse, Closed)):
            connection.request("GET", "/static/large.bin")
        assert server.get("/").body == b"other"
        assert "cannot be read" not in server.log()


def test_a_file_that_is_read_to_be_encrypted(mode: str, file: Path, tmp_path: Path) -> None:
    error = "EIO"
    ours = write(tmp_path, "server.pem", certificate().issued)
    words = ("--tls-certificate", ours)
    with (
        serving(file, mode, "pread64", error, *words, bind=BIND) as server,
        connected(server) as client,
    ):
        client.sendall(b"GET /static/large.bin HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        with suppress(OSError):
            while data := client.recv(65536):
                received += data
        assert len(received) < file.stat().st_size
        said = f'the response is cut short: "{file}" cannot be read: {ERRORS[error]}'
        logged(server, said)


@pytest.mark.parametrize(("error", "status"), [("EIO", 500), ("ESTALE", 503)])
def test_a_file_that_cannot_be_opened(mode: str, file: Path, error: str, status: int) -> None:
    """Small ones are read then."""
    small = file.parent / "small.txt"
    with serving(small, mode, "pread64", error) as server:
        assert server.get("/static/small.txt").status == status
        logged(server, f"a file of {file.parent} cannot be read: {ERRORS[error]} (os error")
        assert server.get("/named").status == status
        logged(server, f'X-Sendfile names "{small}", which cannot be read: {ERRORS[error]} (os')
