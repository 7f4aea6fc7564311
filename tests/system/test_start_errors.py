"""Errors at the start: applications, options, ports and folders that cannot be used."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.failure import says
from tests.testkit.process import files_of_workers
from tests.testkit.server import MODES, Server, wait_for

ECHO = "tests/apps/echo.py"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A folder of modules that cannot be served."""
    (tmp_path / "raises.py").write_text("raise LookupError('told so')\n")
    (tmp_path / "mute.py").write_text(
        "class Mute(Exception):\n    def __str__(self): raise TypeError('no text')\nraise Mute\n"
    )
    (tmp_path / "typo.py").write_text("def application(environ, start_response:\n")
    (tmp_path / "missing.py").write_text("import no_such_module_at_all\n")
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "empty.py").write_text("application = None\n")
    (tmp_path / "fine.py").write_text("def application(environ, start_response): ...\n")
    return tmp_path


# The application


@pytest.mark.parametrize(
    ("mode", "target", "named"),
    [
        ("single", "no_such_module:app", "no_such_module"),
        ("forking", "no_such_file.py:app", "no_such_file.py"),
        ("threading", "raises.py", "told so"),
        ("gevent", "missing.py", "no_such_module_at_all"),
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
        ("mute.py", "Mute: (its message cannot be made)"),
        ("empty.py", "application"),
        ("fine.py:nothing", "nothing"),
        ("fine:nothing", "nothing"),
        ("dispatch:no_such_folder", "no_such_folder"),
        ("no_such_scheme:x/y", "no_such_scheme"),
    ],
)
def test_application_cannot_be_loaded(broken: Path, target: str, named: str) -> None:
    assert named in says(4, "serve", target, "--bind", "127.0.0.1:0", cwd=broken)


# Options and addresses


@pytest.mark.parametrize(("family", "host"), [("AF_INET", "127.0.0.1"), ("AF_INET6", "::1")])
def test_port_of_a_connection(family: str, host: str) -> None:
    """Programs that open connections have ports, too."""
    with (
        socket.create_server((host, 0), family=socket.AddressFamily[family]) as server,
        # Bound first, so that no other connection has the same port.
        socket.create_connection(server.getsockname()[:2], source_address=(host, 0)) as client,
        socket.socket(socket.AddressFamily[family]) as reserving,
    ):
        reserving.bind((host, 0))
        within = f"[{host}]" if ":" in host else host
        listening, connected, reserved = (
            says(5, "serve", ECHO, "--bind", f"{within}:{each.getsockname()[1]}")
            for each in (server, client, reserving)
        )
        assert "; another program listens there: stop it" in listening
        peer = f"{within}:{server.getsockname()[1]}"
        assert f"no program listens there: it is the local port of a connection to {peer}." in (
            connected
        )
        assert "no program listens there, but one has reserved it" in reserved


def test_address_that_is_not_ours(folder: Path) -> None:
    # 192.0.2.0/24 is for documentation (RFC 5737): no machine has it.
    assert "192.0.2.1" in says(5, "serve", ECHO, "--bind", "192.0.2.1:0")
    path = folder / "no_such_folder" / "socket"
    assert "no_such_folder" in says(5, "serve", ECHO, "--bind", f"unix:{path}")
    assert "fd:99" in says(5, "serve", ECHO, "--bind", "fd:99")


def test_folder_of_temporary_files_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        path = tmp_path / name
        options = ("--bind", "127.0.0.1:0", "--temp-dir", str(path))
        text = says(3, "serve", ECHO, *options)
        assert "temp-dir" in text
        assert str(path) in text
    assert str(path) in says(3, "check", ECHO, "--bind", "127.0.0.1:0", "--temp-dir", str(path))


def test_body_lies_in_the_folder_of_temporary_files(tmp_path: Path) -> None:
    with Server(ECHO, "single", "--temp-dir", str(tmp_path)) as server, server.connect() as client:
        client.send(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1100001\r\n\r\n")
        client.send(b"x" * 1_100_000)
        wait_for(
            lambda: any(str(tmp_path) in link for link in files_of_workers(server)),
            "a file of the body",
        )
        client.send(b"x")
        assert client.response().status == 200
