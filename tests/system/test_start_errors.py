"""Errors at the start: applications, options, ports and folders that cannot be used."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.failure import says
from tests.testkit.process import files_of_workers
from tests.testkit.server import MODES, Server, wait_for

ECHO = "tests/apps/echo.py"


#: Modules that cannot be served.
BROKEN = {
    "raises": "raise LookupError('told so')\n",
    "exits": "import sys\nsys.exit(0)\n",
    "mute": "class Mute(Exception):\n    def __str__(self): return 1 / 0\nraise Mute\n",
}


@pytest.mark.parametrize(
    ("mode", "target", "named"),
    [
        ("single", "no_such_module:app", "no_such_module"),
        ("forking", "exits.py", "exits.py cannot be imported: SystemExit: sys.exit(0) was called"),
        ("threading", "raises.py", "told so"),
        ("gevent", "mute.py", "Mute: (its message cannot be made)"),
    ],
)
def test_application_cannot_be_loaded(tmp_path: Path, mode: str, target: str, named: str) -> None:
    """In any mode; tests/unit/test_targets.py has what is told of each mistake."""
    for name, text in BROKEN.items():
        (tmp_path / f"{name}.py").write_text(text)
    options = ("--bind", "127.0.0.1:0", *MODES[mode])
    assert named in says(4, "serve", target, *options, cwd=tmp_path)


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
        why = f"it is the local port of a connection to {within}:{server.getsockname()[1]}."
        assert f"no program listens there: {why}" in connected
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
