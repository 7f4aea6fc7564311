"""The pidfile: written atomically, refused if its process is alive, replaced if not."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from poorhttp.errors import ConfigError
from poorhttp.process.pidfile import PidFile
from tests.support.binary_upgrade import end, upgrade
from tests.support.forked_command import run_command
from tests.testkit.process import children, lives
from tests.testkit.server import Server

GATE = "tests/apps/gate.py"

#: Locks a file for reading, as whoever may read it can, and says so.
READER = """
import fcntl, os, sys
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
fcntl.lockf(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_SH)
print("locked", flush=True)
sys.stdin.read()
"""


def serve(path: Path) -> Server:
    """A server with this file."""
    return Server(GATE, "single", "--pidfile", str(path))


def written(path: Path) -> str:
    """What the file of this process says; it is removed again."""
    file = PidFile(str(path))
    file.write()
    text = path.read_text()
    file.remove()
    return text


def refused(path: Path) -> str:
    """Why it is not written."""
    messages = []
    before = path.lstat()
    for attempt in ("check", "write"):
        with pytest.raises(ConfigError) as failure:
            getattr(PidFile(str(path), "x.ini:3: pidfile"), attempt)()
        messages.append(str(failure.value))
    assert len(set(messages)) == 1
    assert messages[0].startswith("x.ini:3: pidfile: ")
    after = path.lstat()
    assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)
    return messages[0]


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_written_and_removed(folder: Path, umask: int) -> None:
    path = folder / "pid"
    file = PidFile(str(path))
    before = os.umask(umask)
    try:
        file.check()
        file.write()
    finally:
        os.umask(before)
    assert path.read_text() == f"{os.getpid()}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    if (child := os.fork()) == 0:
        # It has the descriptor too, but neither the lock nor the right to remove the file.
        file.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert path.exists(), "a child removed the file of its parent"
    # After a reload that did not change it.
    file.write()
    assert os.listdir(folder) == ["pid"]
    file.remove()
    file.remove()
    assert os.listdir(folder) == []


def test_relative_to_where_we_were(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    file = PidFile("pid")
    file.write()
    monkeypatch.chdir("/")
    file.remove()
    assert os.listdir(folder) == []


@pytest.mark.parametrize(
    "text", ["", "1\n", "99999999999", pytest.param(f"{os.getpid()}\n", id="ours")]
)
def test_left_over_with_any_number(folder: Path, text: str) -> None:
    """The number may belong to another process by now: process 1 lives and is not ours."""
    path = folder / "pid"
    path.write_text(text)
    assert written(path) == f"{os.getpid()}\n"
    assert os.listdir(folder) == []


def test_files_that_are_no_pidfiles_are_left_alone(folder: Path) -> None:
    path = folder / "pid"
    path.write_text("root:x:0:0::/root:/bin/sh\n")
    assert "does not hold a process ID" in refused(path)
    path.unlink()
    (folder / "precious").write_text("1\n")
    path.symlink_to(folder / "precious")
    assert "is a symbolic link, and was left alone" in refused(path)
    assert (folder / "precious").read_text() == "1\n"
    path.unlink()
    os.mkfifo(path)
    assert "is not a regular file, and was left alone" in refused(path)
    path.unlink()
    path.mkdir()
    assert "Is a directory" in refused(path)


def test_no_such_folder(folder: Path) -> None:
    path = folder / "no" / "pid"
    for attempt in ("check", "write", "replace"):
        with pytest.raises(ConfigError, match=f"there is no folder {folder}/no$"):
            getattr(PidFile(str(path)), attempt)()


def test_held_by_a_server_until_its_end(folder: Path) -> None:
    """A new main process takes the file over while the old one lives."""
    path = folder / "pid"
    with serve(path) as server:
        assert f"{path} is held by process {server.process.pid}, which is running" in refused(path)
        done = run_command("serve", GATE, "--bind", "127.0.0.1:0", "--pidfile", str(path))
        assert done.returncode == 3
        assert done.stderr == (
            f"poorhttp: --pidfile: {path} is held by process {server.process.pid}, which is "
            "running; stop it, or choose another file\n"
        )
        new = upgrade(server, path)
        assert path.read_text() == f"{new}\n", "the old process removed the file of the new one"
        assert f"is held by process {new}" in refused(path)
        end(server, new)
    assert os.listdir(folder) == []
    assert written(path) == f"{os.getpid()}\n"


def test_left_over_from_a_server_that_was_killed(folder: Path) -> None:
    """Although a worker still drains, and somebody who may only read it has locked the file."""
    folder.chmod(0o755)
    path = folder / "pid"
    with serve(path) as killed:
        killed.enter(folder / "never")
        (worker,) = children(killed.process.pid)
        reader = subprocess.Popen(
            [sys.executable, "-S", "-c", READER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with reader:
            assert reader.stdout
            try:
                # It waits for the lock until the server ends.
                killed.process.kill()
                assert reader.stdout.readline() == "locked\n"
                assert path.read_text() == f"{killed.process.pid}\n"
                PidFile(str(path)).check()
                assert written(path) == f"{os.getpid()}\n"
                assert not path.exists()
                assert lives(worker)
                # A server of the same time is still noticed.
                with serve(path):
                    assert "is running" in refused(path)
            finally:
                reader.kill()
        killed.kill()
