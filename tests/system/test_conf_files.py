"""The files of conf/, each tried with the program that it configures."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from poorhttp.config import loader
from tests.packages import FOLDERS, need
from tests.support.forked_command import run_command
from tests.testkit.client import Connection, Response
from tests.testkit.process import children
from tests.testkit.server import MODES, ROOT, Program, Server, run, wait_for

CONF = ROOT / "conf"
UNITS = ("poorhttp.service", "poorhttp.socket", "poorhttp@.service", "poorhttp@.socket")
SERVICES = UNITS[::2]
OURS = sorted(
    {each.name for each in CONF.glob("*.ini")} - {"uwsgi.ini"} | {f"{mode}.ini" for mode in MODES}
)


@pytest.mark.parametrize("name", OURS)
def test_files_of_ours(name: str) -> None:
    (settings,) = loader.load({}, {}, str(CONF / name))
    assert settings.target
    if name.removesuffix(".ini") in MODES:
        assert name == f"{settings.mode}.ini"
        assert settings.target == "dispatch:apps/lightheavy"
        assert [str(item) for item in settings.bind] == ["127.0.0.1:8080"]
    if not settings.target.startswith("/srv/"):
        done = run_command("check", "-c", f"conf/{name}", "--bind", "127.0.0.1:0")
        assert done.returncode == 0, done.stderr


def install(folder: Path, change: tuple[str, str] = ("", "")) -> list[str]:
    """Copy the units, with one `change`, to where a command exists; instances of the templates."""
    names = []
    for name in UNITS:
        text = (CONF / name).read_text().replace("/opt/poorhttp/bin/poorhttp", sys.executable)
        names.append(name.replace("@", "@shop"))
        for copy in {name, names[-1]}:
            (folder / copy).write_text(text.replace(*change) if change[0] else text)
    return [f"./{name}" for name in names]


def test_units_are_right(folder: Path) -> None:
    need("systemd-analyze")
    done = run("systemd-analyze", "verify", *install(folder), cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run("systemd-analyze", "verify", *install(folder, ("UMask", "Umask")), cwd=folder)
    assert "'Umask' in section [Service]" in done.stderr


@pytest.mark.parametrize("name", SERVICES)
def test_units_are_locked(name: str) -> None:
    """10 is the worst, systemd calls what is below 2 fine; the threshold is in tenths."""
    need("systemd-analyze")
    words = ("systemd-analyze", "security", "--offline=yes")
    done = run(*words, "--threshold=15", CONF / name)
    assert done.returncode == 0, done.stdout
    assert run(*words, "--threshold=5", CONF / name).returncode != 0, "it accepts anything"


#: Refuses memory that can be both written and executed, as MemoryDenyWriteExecute= does. (A kernel
#: before 6.3 cannot be asked.)
DENY = """
import ctypes, os, sys
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.each_mode
def test_without_memory_that_can_be_written_and_executed(mode: str) -> None:
    with Server("tests/apps/echo.py", mode, launcher=(sys.executable, "-c", DENY)) as server:
        assert server.request("POST", "/", body=b"x").status == 200


def test_logs_are_rotated(folder: Path) -> None:
    need("logrotate")
    program = shutil.which("logrotate", path=FOLDERS)
    assert program
    folder.chmod(0o755)
    log, pidfile = folder / "access.log", folder / "pid"
    text = (CONF / "logrotate").read_text().replace("/var/log/poorhttp", str(folder))
    rules = folder / "rules"
    rules.write_text(text.replace("/run/poorhttp/poorhttp.pid", str(pidfile)))
    # It only takes rules that nobody else can have written.
    rules.chmod(0o644)
    options = ("--access-log", str(log), "--pidfile", str(pidfile), "--workers", "2")
    with Server("apps/hello/app.py", "threading", *options) as server:
        assert server.get("/before").status == 200
        wait_for(lambda: "/before" in log.read_text(), "the first line")
        done = run(program, "--force", "--state", folder / "state", rules)
        assert done.returncode == 0, done.stderr
        old = folder / "access.log.1"
        assert "/before" in old.read_text()

        def arrives() -> bool:
            assert server.get("/after").status == 200
            return "/after" in log.read_text()

        wait_for(arrives, "a line in the new file")
        assert log.stat().st_mode & 0o777 == 0o640


def get(port: int, target: str) -> Response:
    with Connection(("127.0.0.1", port)) as connection:
        return connection.request("GET", target)


def test_the_same_application_under_uwsgi() -> None:
    program = Path(sys.executable).with_name("pyuwsgi")
    words = (program, "--ini", "conf/uwsgi.ini:flask")
    with (
        Program(*words, env={"BIND": "127.0.0.1:0"}, merged=True) as uwsgi,
        Server("apps/flaskapp/app.py") as server,
    ):
        uwsgi.wait_line(re.compile("spawned uWSGI worker 2"))
        bound = uwsgi.wait_line(re.compile(r"bound to TCP address 127\.0\.0\.1:(\d+)"))
        for path in ("/", "/hello/you", "/nowhere"):
            theirs, ours = get(int(bound[1]), path), server.get(path)
            assert theirs.status == ours.status
            assert theirs.get("Content-Type") == ours.get("Content-Type")
            # But for the time of day.
            pattern = re.compile(rb"\d+:\d\d:\d\d|[0-9a-f]{32,40}")
            assert pattern.sub(b"", theirs.body) == pattern.sub(b"", ours.body)
        uwsgi.process.terminate()
        assert uwsgi.wait() == 0, uwsgi.log()


def test_under_runit(folder: Path) -> None:
    """The process that is started is the one that serves, so that it can be watched and stopped."""
    ours = folder / "poorhttp"
    ours.write_text(f'#!/bin/sh\nexec {sys.executable} -m poorhttp "$@"\n')
    ours.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    env = {"PATH": path, "SITE": str(ROOT), "POORHTTP_BIND": "127.0.0.1:0"}
    with Program(CONF / "runit" / "run", cwd=folder, env=env, merged=True) as program:
        url = program.wait_line()[2]
        assert children(program.process.pid) == []
        assert get(int(url.rpartition(":")[2]), "/light").status == 200
        program.process.terminate()
        assert program.wait() == 0, program.log()
