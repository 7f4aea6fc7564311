"""Access and error log as files and pipes: lines, rotation under load, write errors."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.logs.log_files import rotate
from tests.support import fuse
from tests.support.each_value import DIFFERENT, each_value
from tests.support.failure import says
from tests.testkit.process import children, limited, opened
from tests.testkit.server import MODES, Server, join, wait_for

TALKER = "tests/apps/talker.py"
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


@pytest.fixture
def fifo(folder: Path) -> Path:
    os.mkfifo(folder / "fifo")
    return folder / "fifo"


@contextmanager
def reading(fifo: Path) -> Iterator[Callable[[], str]]:
    """Open a named pipe; what is yielded returns all that has come out of it by now."""
    seen: list[str] = []
    fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    def read() -> str:
        with suppress(BlockingIOError):
            while data := os.read(fd, 1 << 20):
                seen.append(data.decode())
        return "".join(seen)

    try:
        yield read
    finally:
        os.close(fd)


def lost(log: str) -> int:
    """How many lines of the access log are lost, by what the error log says."""
    found = re.findall(r"error: (\d+) lines of the access log could not be written, and", log)
    return sum(map(int, found))


# Lines


@pytest.mark.each_mode
def test_lines_name_process_worker_and_request(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "error.log"
    with Server(TALKER, mode, "--error-log", str(path), tracebacks=True) as server:
        server.get("/logger?nothing")
        server.get("/raise?told%20so")
        with server.connect() as connection:
            connection.send(b"GET / HTTP/1.1\r\nHost : a\r\n\r\n")
            assert connection.response().status == 400
        with server.connect() as connection:
            connection.send(b"GET / HTTP/1.1\r\nHo")
        wait_for(lambda: "left in the middle" in path.read_text(), "the line")
    lines = path.read_text()
    worker = rf"^{STAMP} \[\d+ worker [12]\]"
    for pattern in (
        rf"{worker} error: request \d+ GET /raise\?told%20so: the application failed: ValueError: ",
        rf"{worker} info: request \d+ of 127\.0\.0\.1:\d+: refused with 400 \(",
        rf"{worker} info: request \d+ of 127\.0\.0\.1:\d+: the client left in the middle of it$",
    ):
        assert re.search(pattern, lines, re.MULTILINE), lines


def test_main_process_and_lone_process(tmp_path: Path) -> None:
    path = tmp_path / "error.log"
    with Server(TALKER, "single", "--error-log", str(path)) as server:
        os.kill(server.process.pid, signal.SIGHUP)
        wait_for(lambda: "reloaded" in path.read_text(), "the reload")
        assert re.match(rf"{STAMP} \[{server.process.pid} main\] info: ", path.read_text())
    path.unlink()
    options = ("--error-log", str(path), "--supervisor", "off")
    with Server(TALKER, "single", *options, tracebacks=True) as server:
        server.get("/raise?x")
        wait_for(path.read_text, "the line")
        assert re.match(rf"{STAMP} \[{server.process.pid}\] error: ", path.read_text())


def test_exceptions_cannot_forge_lines(serve: Callable[..., Server], mode: str) -> None:
    """Lines behind the first are indented, and what moves a cursor is made visible.

    What the application writes itself stays as it is.
    """
    server = serve(TALKER, tracebacks=True)
    start = server.log_size()
    text = "a\n2026-11-20T09:27:42Z [1 main] error: forged\r\x1b[2J\x9b\u2028b\nend"
    server.get(f"/raise?{quote(text)}")
    server.wait_log("\n    end\n")
    first, *others = server.log(start).splitlines()
    assert re.match(rf"{STAMP} \[\d+ worker \d\] error: request", first)
    assert all(line.startswith("    ") for line in others), others
    assert "    2026-11-20T09:27:42Z [1 main] error: forged\\x0d\\x1b[2J\\x9b\\u2028b" in others
    text = " as it is: \x1b[1m"
    server.get(f"/say?{quote(text)}")
    server.wait_log(text)


#: Executes a server that finds the journal at its standard error.
JOURNAL = """
import os, sys
file = os.fstat(2)
os.environ["JOURNAL_STREAM"] = f"{file.st_dev}:{file.st_ino}"
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_priorities_for_the_journal() -> None:
    """Where standard error is the journal's, each line begins with its priority (sd-daemon(3))."""
    launcher = (sys.executable, "-c", JOURNAL)
    with Server(TALKER, "single", launcher=launcher, tracebacks=True) as server:
        server.get("/raise?" + quote("one\ntwo"))
        server.wait_log("<3>    two\n")
        server.process.terminate()
        server.wait()
        _, first, *others, last = server.log().splitlines()
        server.ended()
    assert re.match(r"<3>\[\d+ worker 1\] error: request 1 GET /raise", first)
    assert all(line.startswith("<3>    ") for line in others)
    assert re.fullmatch(r"<6>\[\d+ main\] info: the server stops \(SIGTERM\)", last)


# Rotation


@pytest.mark.parametrize(
    ("mode", "supervisor"), each_value(DIFFERENT, ["on", "off"]), indirect=["mode"]
)
def test_rotation_under_load(mode: str, supervisor: str, tmp_path: Path) -> None:
    """Each line is in exactly one of the files, whole; nobody writes to an old file afterwards."""
    if (mode, supervisor) == ("forking", "off"):
        pytest.skip("forking has several processes")
    access, error = tmp_path / "access.log", tmp_path / "error.log"
    options = ("--access-log", str(access), "--access-log-format", "%s %q .", "--error-log")
    answered: list[str] = []
    over = threading.Event()

    def ask(server: Server, name: int) -> None:
        with server.connect() as connection:
            number = 0
            while not over.is_set():
                token = f"{name}-{number}"
                assert connection.request("GET", f"/say?{token}.%0A").status == 200
                answered.append(token)
                number += 1

    rounds = 4
    with Server(TALKER, mode, *options, str(error), "--supervisor", supervisor) as server:
        threads = [threading.Thread(target=ask, args=(server, name)) for name in range(4)]
        for thread in threads:
            thread.start()
        try:
            for number in range(rounds):
                rotate(server, access, error, number=number)
                for path in (access, error):
                    wait_for(path.read_text, f"lines in the new {path}")
                wait_for(
                    lambda: holders(server, tmp_path) <= {"access.log", "error.log"}, "the last one"
                )
        finally:
            over.set()
            for thread in threads:
                join(thread)
    # A regular file is written to four times a second; no round may have been too fast for that.
    files = [path.read_text() for path in tmp_path.glob("access*")]
    lines = "".join(files).splitlines()
    assert len(files) == rounds + 1
    assert all(re.fullmatch(r"200 \?\d-\d+\.%0A \.", line) for line in lines), lines[-5:]
    assert Counter(line[5:-6] for line in lines) == Counter(answered)
    said = "".join(path.read_text() for path in tmp_path.glob("error*")).splitlines()
    said = [line for line in said if not line.startswith("20")]
    assert Counter(said) == Counter(f"{token}." for token in answered)


def holders(server: Server, folder: Path) -> set[str]:
    """The names of those files in `folder` that a process of the server has open."""
    pids = (server.process.pid, *children(server.process.pid))
    paths = [Path(name) for pid in pids for name in opened(pid)]
    return {path.name for path in paths if path.parent == folder}


def test_crashes_are_traced_in_the_new_file(tmp_path: Path) -> None:
    """`faulthandler` and everybody else who has the descriptor of `wsgi.errors` follow."""
    path = tmp_path / "error.log"
    with Server(TALKER, "single", "--error-log", str(path)) as server:
        rotate(server, path)
        wait_for(lambda: holders(server, tmp_path) == {"error.log"}, "the worker")
        server.get("/trace")
        assert "talker.py" in path.read_text()


def test_file_that_cannot_be_reopened(mode: str, tmp_path: Path) -> None:
    """The old one goes on, and says why."""
    folder = tmp_path / "logs"
    folder.mkdir()
    error, access = folder / "error.log", folder / "access.log"
    options = ("--error-log", str(error), "--access-log", str(access))
    with Server(TALKER, mode, *options) as server:
        folder.rename(tmp_path / "old")
        (tmp_path / "logs").write_text("")
        server.process.send_signal(signal.SIGUSR1)
        old = tmp_path / "old" / "error.log"
        message = (
            "a log cannot be reopened, and continues in the old file: --error-log: cannot open"
        )
        count = 1 + server.workers
        wait_for(lambda: old.read_text().count(message) == count, "the word of each process")
        assert server.get("/say?still%20here").status == 200
        wait_for(lambda: "still here" in old.read_text(), "the line of the application")
    assert "/say" in (tmp_path / "old" / "access.log").read_text()


def test_files_belong_to_those_who_write_them(tmp_path: Path) -> None:
    """The main process makes them, and workers of another group can open them."""
    if os.geteuid() != 0:
        # Then there is nobody to give them to.
        assert "only root can become" in says(3, "serve", TALKER, "--group", "nogroup")
        return
    access, error = tmp_path / "access.log", tmp_path / "error.log"
    options = ("--access-log", str(access), "--error-log", str(error), "--group", "65534")
    with Server(TALKER, "single", *options) as server:
        assert access.stat().st_gid == error.stat().st_gid == 65534
        for number in range(3):
            rotate(server, access, error, number=number)
            wait_for(lambda: holders(server, tmp_path) <= {"access.log", "error.log"}, "the worker")
            assert access.stat().st_gid == error.stat().st_gid == 65534
            assert access.stat().st_mode & 0o777 == 0o640
            server.get(f"/say?after%20{number}")
            wait_for(error.read_text, "the line of the application")
            assert error.read_text() == f"after {number}\n"
    assert "GET /say?after%202" in access.read_text()


# Faults


@pytest.mark.parametrize("option", ["access-log", "error-log"])
@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("missing/x.log", "No such file or directory; there is no folder .*/missing"),
        ("file/x.log", "Not a directory"),
        ("folder", "Is a directory"),
        ("fifo", "No such device or address"),
        ("syslog:missing", "No such file or directory"),
        ("journald:file", "Connection refused"),
    ],
)
def test_cannot_be_opened(mode: str, option: str, where: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    target = str(Path(TALKER).resolve())
    options = (*MODES[mode], "--bind", "127.0.0.1:0", f"--{option}", where)
    message = says(3, "serve", target, *options, cwd=tmp_path)
    place = str(tmp_path / where.partition(":")[2]) if ":" in where else where
    assert re.fullmatch(
        rf"poorhttp: --{option}: cannot (open|reach \w+ at) {re.escape(place)}: {why}\n", message
    ), message


def test_full_disk_under_the_access_log(mode: str, tmp_path: Path) -> None:
    """Requests go on being answered; what is lost is counted, and told when there is room."""
    path = tmp_path / "access.log"
    path.symlink_to("/dev/full")
    with Server(TALKER, mode, "--access-log", str(path), "--workers", "1") as server:
        for _ in range(20):
            assert server.get("/").status == 200
        server.wait_log("error: the access log cannot be written: No space left on device")
        assert lost(server.log()) == 0
        rotate(server, path)

        def is_written() -> bool:
            # The worker may not have it open yet.
            server.get("/?after")
            return "/?after" in path.read_text()

        wait_for(is_written, "a line")
        wait_for(lambda: lost(server.log()) >= 20, "the number of lines")
    assert {line.split()[6] for line in path.read_text().splitlines()} == {"/?after"}
    assert server.workers == 1


@pytest.mark.skipif(not fuse.USABLE, reason="only root mounts file systems")
def test_disk_that_does_not_answer(mode: str, tmp_path: Path) -> None:
    """Requests go on being answered, and their lines are written when it answers again."""
    with fuse.StallingFolder(tmp_path) as folder:
        path = tmp_path / "access.log"
        with Server(TALKER, mode, "--access-log", str(path), "--workers", "1") as server:
            server.get("/?first")
            wait_for(lambda: b"/?first" in folder.content, "the first line")
            folder.going.clear()
            server.get("/?waits")
            wait_for(folder.is_asked, "a write to the file")
            for number in range(99):
                assert server.get(f"/?{number}").status == 200
            assert folder.content.count(b"\n") == 1
            folder.going.set()
            wait_for(lambda: folder.content.count(b"\n") == 101, "all lines")
            folder.going.clear()
            assert server.get("/?lost").status == 200
            server.process.send_signal(signal.SIGTERM)
            assert server.wait() == 0
            assert lost(server.log()) == 1
            server.ended()


def test_full_disk_under_the_error_log(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "error.log"
    path.symlink_to("/dev/full")
    options = ("--error-log", str(path), "--workers", "1")
    with Server(TALKER, mode, *options, tracebacks=True) as server:
        asked = 5
        for _ in range(asked):
            assert server.get("/raise?lost").status == 500
        rotate(server, path)
        wait_for(lambda: holders(server, tmp_path) == {"error.log"}, "the worker")

        def is_kept() -> bool:
            # The worker may have it open, and not write to it yet.
            nonlocal asked
            asked += 1
            assert server.get("/raise?kept").status == 500
            return "ValueError: kept" in path.read_text()

        def are_accounted_for() -> bool:
            # A client has its answer a moment before the message is written, and the number of
            # those that are lost follows the first message that is kept.
            log = path.read_text()
            lost = re.findall(r"\[\d+ worker 1\] error: (\d+) messages before this could not", log)
            kept = len(re.findall(r"ValueError: (?:lost|kept)\n    Traceback", log))
            return sum(map(int, lost)) + kept == asked

        wait_for(is_kept, "what was kept")
        wait_for(are_accounted_for, "the number of the others")


def test_line_that_is_torn_by_a_full_disk(tmp_path: Path) -> None:
    """Here: a limit of the file size. Nothing is added to a line of which a part is lost."""
    path = tmp_path / "access.log"
    options = ("--access-log", str(path), "--access-log-format", "%q")
    with limited(resource.RLIMIT_FSIZE, 1 << 20):
        server = Server(TALKER, "single", *options)
    with server:
        with server.connect() as connection:
            for number in range(1200):
                query = f"{number:04}".ljust(1000, "x")
                assert connection.request("GET", f"/?{query}").status == 200
                if number in (500, 1000):
                    # Else a busy machine could have more lines wait than the server keeps.
                    size = 1002 * (number + 1)
                    wait_for(lambda: path.stat().st_size == size, "the lines")  # noqa: B023
        server.wait_log("the access log cannot be written: File too large")
        # Room is made as an administrator in need does it.
        os.truncate(path, 500_500)
        connection = server.connect()
        assert connection.request("GET", "/?after").status == 200
        wait_for(lambda: lost(server.log()), "the number of lines")
        missing = lost(server.log())
    text = path.read_text()
    whole = [int(number) for number in re.findall(r"^\?(\d{4})x{996}$", text, re.MULTILINE)]
    kept, fitted = 500_500 // 1002, (1 << 20) // 1002
    # Those that were not yet written when there was room again.
    late = whole[kept:]
    assert whole == [*range(kept), *range(1200 - len(late), 1200)]
    assert missing == 1200 - fitted - len(late)
    assert len(text.splitlines()) == len(whole) + 2, "the torn line and the last one"
    assert text.endswith("\n?after\n")


def test_reader_has_gone(mode: str, fifo: Path) -> None:
    """Of a named pipe: nobody is ended by SIGPIPE, and when one comes again he gets lines again."""
    options = ("--access-log", str(fifo), "--access-log-format", "%q", "--workers", "1")
    with reading(fifo) as read:
        server = Server(TALKER, mode, *options)
        server.get("/?first")
        wait_for(lambda: read() == "?first\n", "the line")
    with server:
        for _ in range(10):
            assert server.get("/?lost").status == 200
        server.wait_log("the access log cannot be written: Broken pipe")
        with reading(fifo) as read:
            server.get("/?again")
            wait_for(lambda: "?again\n" in read(), "the line")
            # Those that still waited to be written had somebody to read them again.
            wait_for(lambda: lost(server.log()) + read().count("?lost") == 10, "the rest")


def test_reader_that_does_not_read(mode: str, fifo: Path) -> None:
    options = ("--access-log", str(fifo), "--access-log-format", "%q", "--workers", "1")
    with reading(fifo) as read, Server(TALKER, mode, *options) as server:
        with server.connect() as connection:
            for number in range(1000):
                query = f"{number:04}".ljust(2000, "x")
                assert connection.request("GET", f"/?{query}").status == 200
        server.wait_log("the access log is not read: there is no room for more lines")
        read()
        server.get("/?again")
        wait_for(lambda: "?again\n" in read(), "the line")
        wait_for(lambda: lost(server.log()), "the number of lines")
        lines = read().splitlines()
        assert len(lines) + lost(server.log()) == 1001
        assert all(re.fullmatch(r"\?\d{4}x{1996}", line) for line in lines[:-1])


def test_reader_of_the_error_log_that_does_not_read(mode: str, fifo: Path) -> None:
    with reading(fifo) as read:
        with Server(TALKER, mode, "--error-log", str(fifo), tracebacks=True) as server:
            text = "x" * 3000
            for _ in range(60):
                assert server.get(f"/raise?{text}").status == 500
            read()
            server.get("/raise?again")
        seen = read()
    found = seen.count("x: the application failed")
    missing = map(int, re.findall(r"error: (\d+) messages before this could not be written", seen))
    assert 0 < found < 60
    assert found + sum(missing) >= 60
    assert all(line.startswith(("20", "    ")) for line in seen.splitlines())
