"""Restricted environments: start, requests, reload, log rotation and stop in each."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.each_value import each_value
from tests.support.nobody import IS_ROOT
from tests.testkit.client import HANG, Connection
from tests.testkit.server import Server, command, environment, run, wait_for

#: Spaces and letters beyond ASCII, as they may stand in any path.
ODD = "pröject of Ján 日本"

APPLICATION = """
import os, sys, time
sys.stderr.write("Ján loads it\\n")
def application(environ, start_response):
    environ["wsgi.errors"].write("Ján asks for " + environ["PATH_INFO"] + "\\n")
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {time.timezone}".encode()]
"""

INI = """
[http]
static = /files=státic files
access_log = ../log/áccess.log
error_log = ../log/érror.log
pidfile = ../číslo.pid
"""

#: Makes the folder read-only in which the server is started, and fills the disk of its logs. Both
#: in a mount namespace of the server's own.
READ_ONLY = 'mount --bind . . && mount -o remount,bind,ro . && cd "$PWD" && ! touch x 2>/dev/null'
FULL = "mount -t tmpfs -o size=4k,mode=700 none ../log && ! head -c 9999 /dev/zero 2>&- >../log/x"

#: A name, what is done before the server is started, and its environment; empty is unset.
ENVIRONMENTS: dict[str, tuple[str, Mapping[str, str]]] = {
    "UTC, and TZ unset": ("", {"TZ": ""}),
    "language C": ("", {"LC_ALL": "C", "LANG": "C"}),
    "ASCII only": ("", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "read-only folder": (READ_ONLY, {}),
    "full disk of logs": (FULL, {}),
}


def launcher(before: str, unset: list[str]) -> tuple[str, ...]:
    """The command that does something before it executes the server."""
    words = ["env", *(f"--unset={name}" for name in unset)]
    if before:
        words += ["unshare", "--mount", *([] if IS_ROOT else ["--map-root-user"])]
        words += ["sh", "-e", "-c", f'{before}\nexec "$@"', "sh"]
    return tuple(words)


@pytest.mark.parametrize(
    ("name", "options"), each_value(ENVIRONMENTS, [(), ("--preload",), ("--supervisor", "off")])
)
def test_life(folder: Path, name: str, options: tuple[str, ...]) -> None:
    before, env = ENVIRONMENTS[name]
    project, log = folder / ODD / "project", folder / ODD / "log"
    (project / "státic files").mkdir(parents=True)
    log.mkdir()
    (project / "my äpp.py").write_text(APPLICATION)
    (project / "státic files" / "ž 1.txt").write_text("file")
    words = ("-c", "sérver.ini", *options)
    (project / "sérver.ini").write_text(INI)
    place = folder / ODD / "sócket"
    unset = [variable for variable, value in env.items() if not value]
    start = launcher(before, unset)
    env = {variable: value for variable, value in env.items() if value}
    binds = ("127.0.0.1:0", "unix:../sócket")
    where: dict[str, Any] = {"env": env, "cwd": project, "launcher": start}
    with Server("my äpp.py", "threading", *words, bind=binds, **where) as server:
        # Of a server in the user namespace of somebody else, nobody sees which one it is.
        if IS_ROOT or not before:
            # Not at the default address, where another program may listen.
            checking = command("check", "my äpp.py", "--bind", "127.0.0.1:0", *words)
            checked = run(*start, *checking, env=env, cwd=project)
            assert checked.returncode == 0, checked.stderr
        first = server.get("/").body.split()
        assert server.get("/files/" + quote("ž 1.txt")).body == b"file"
        with Connection(str(place)) as connection:
            assert connection.request("GET", "/" + quote("ř")).status == 200
        assert (folder / ODD / "číslo.pid").read_text() == f"{server.process.pid}\n"
        if "off" not in options:
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: server.get("/").body.split()[0] != first[0], "the new version")
        if "full" not in name:
            for file in log.iterdir():
                file.rename(f"{file}.1")
            server.process.send_signal(signal.SIGUSR1)
            wait_for(lambda: len(list(log.iterdir())) == 4, "the new logs")
        assert server.get("/").status == 200
        with Connection(str(place)) as connection:
            assert connection.request("GET", "/").status == 200
    assert not place.exists()
    assert not (folder / ODD / "číslo.pid").exists()
    if "full" not in name:
        text = "".join(file.read_text() for file in log.glob("érror.log*"))
        assert "error:" not in text.replace("error: Ján asks for", "")
        # As PEP 3333 has it: each character is a byte.
        assert "Ján asks for /\n" in text
        lines = "".join(file.read_text() for file in log.glob("áccess.log*")).splitlines()
        zone = run(*start[: len(unset) + 1], "date", "+%z", env=env).stdout.strip()
        assert all(f" {zone}] " in line for line in lines)
        assert f'"GET /files/{quote("ž 1.txt")} HTTP/1.1" 200 4' in "\n".join(lines)


@pytest.mark.parametrize("options", [(), ("--supervisor", "off")])
def test_standard_error_on_a_full_disk(folder: Path, options: tuple[str, ...]) -> None:
    """Applications that write to the log are served, and systemd is told that we are ready."""
    (folder / "app.py").write_text(APPLICATION.replace("sys.stderr", "sys.stdout"))
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
        open("/dev/full", "w") as full,
    ):
        manager.bind(str(folder / "notify"))
        manager.settimeout(HANG)
        process = subprocess.Popen(
            command("serve", "app.py", "--bind", f"unix:{folder}/socket", *options),
            cwd=folder,
            env=environment({"NOTIFY_SOCKET": f"{folder}/notify"}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=full,
        )
        try:
            while b"READY=1" not in manager.recv(4096):
                pass
            with Connection(str(folder / "socket")) as connection:
                assert connection.request("GET", "/").status == 200
            process.terminate()
            assert process.wait(HANG) == 0
        finally:
            process.kill()
            process.wait(HANG)
