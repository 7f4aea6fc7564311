"""The pidfile: written atomically, refused if its process is alive, replaced if not."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from poorhttp.errors import ConfigError
from poorhttp.process.pidfile import PidFile
from tests.support.forked_command import run_command
from tests.testkit.client import HANG
from tests.testkit.server import environment

#: Writes the file and has a child, which says so. Ends with its standard input, but not its child.
HOLDER = """
import os, sys
from poorhttp.errors import Failure
from poorhttp.process.pidfile import PidFile
file = PidFile(sys.argv[1], "--pidfile")
try:
    getattr(file, sys.argv[2])()
except Failure as failure:
    sys.exit(str(failure))
if os.fork():
    sys.stdin.read()
    file.remove()
else:
    # It has the descriptor too, but neither the lock nor the right to remove the file.
    file.remove()
    print(os.getpid(), flush=True)
    import time
    time.sleep(600)
"""


class Holder:
    """Another process that holds a pidfile, and has a child."""

    def __init__(self, path: Path, how: str = "write") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path), how],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        self.pid = self.process.pid
        self.child = int(self.process.stdout.readline())

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(HANG)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(HANG)

    def close(self) -> None:
        os.kill(self.child, signal.SIGKILL)
        self.process.kill()
        self.process.wait(HANG)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream
            stream.close()


@pytest.fixture
def hold(folder: Path) -> Iterator[Callable[..., Holder]]:
    holders: list[Holder] = []

    def start(path: Path, how: str = "write") -> Holder:
        holders.append(Holder(path, how))
        return holders[-1]

    yield start
    for holder in holders:
        holder.close()


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


def test_held_by_another(folder: Path, hold: Callable[..., Holder]) -> None:
    path = folder / "pid"
    holder = hold(path)
    assert f"{path} is held by process {holder.pid}, which is running" in refused(path)
    holder.end()
    assert not path.exists()
    assert written(path) == f"{os.getpid()}\n"


def test_left_over_from_one_that_was_killed(folder: Path, hold: Callable[..., Holder]) -> None:
    """Although a child of it lives, as a worker does that still drains."""
    path = folder / "pid"
    holder = hold(path)
    holder.kill()
    assert path.read_text() == f"{holder.pid}\n"
    assert written(path) == f"{os.getpid()}\n"


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


def test_the_command_says_so(folder: Path, hold: Callable[..., Holder]) -> None:
    path = folder / "pid"
    holder = hold(path)
    bind = ("--bind", "127.0.0.1:0")
    done = run_command("serve", "tests/apps/echo.py", *bind, "--pidfile", str(path))
    assert done.returncode == 3
    assert done.stderr == (
        f"poorhttp: --pidfile: {path} is held by process {holder.pid}, which is running; stop it, "
        "or choose another file\n"
    )


def test_successor(folder: Path, hold: Callable[..., Holder]) -> None:
    """A new main process takes the file over while the old one lives."""
    path = folder / "pid"
    old = hold(path)
    new = hold(path, "replace")
    assert path.read_text() == f"{new.pid}\n"
    old.end()
    assert path.read_text() == f"{new.pid}\n", "the old process removed the file of the new one"
    assert f"is held by process {new.pid}" in refused(path)
    new.end()
    assert os.listdir(folder) == []


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


def test_a_lock_of_somebody_who_may_only_read(folder: Path, hold: Callable[..., Holder]) -> None:
    """No other user keeps a server that was killed from being started again."""
    folder.chmod(0o755)
    path = folder / "pid"
    killed = hold(path)
    reader = subprocess.Popen(
        [sys.executable, "-S", "-c", READER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with reader:
        assert reader.stdin
        assert reader.stdout
        try:
            # It waits for the lock until the server ends.
            killed.kill()
            assert reader.stdout.readline() == "locked\n"
            PidFile(str(path)).check()
            assert written(path) == f"{os.getpid()}\n"
            assert not path.exists()
            # A server of the same time is still noticed.
            hold(path)
            assert "is running" in refused(path)
        finally:
            reader.kill()
