"""The terminal: lines of requests, with and without colours."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from poorhttp.config.settings import Settings
from poorhttp.plugins.dev.terminal import Terminal
from tests.support.forked_command import run_command
from tests.testkit.client import HANG, Connection
from tests.testkit.process import children
from tests.testkit.server import READY, ROOT, Server, command, environment, wait_for, written

TALKER = "tests/apps/talker.py"
SHOWN = ("--access-log", "terminal")
#: Slow requests have lines of their own, however busy the machine is.
NEVER_SLOW = ("--slow-request", "600")

#: A line about a request: time, method, status, duration, size, target.
LINE = re.compile(
    r"^\d\d:\d\d:\d\d (\S+) +(\d{3}) +(<?[\d.]+ m?s)([! ]) *([\d.]+ k?B)  (.*)$", re.MULTILINE
)
MORE = re.compile(r"^ {9}x (\d+) more, median <?[\d.]+ m?s(, longest <?[\d.]+ m?s)?$", re.MULTILINE)
COLOUR = re.compile("\x1b\\[[0-9;]*m")


def targets(text: str) -> list[str]:
    """The targets that have a line of their own."""
    return [found[5] for found in LINE.findall(text)]


def counted(text: str) -> int:
    """How many requests the lines are about."""
    return len(targets(text)) + sum(int(found[0]) for found in MORE.findall(text))


def start(
    stderr: int, *options: str, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """The server, whose standard error is a descriptor; that is closed here."""
    inherited = environment({"TERM": "xterm"})
    kept = {key: value for key, value in inherited.items() if "COLOR" not in key}
    process = subprocess.Popen(
        command("serve", TALKER, "--bind", "127.0.0.1:0", *SHOWN, *options),
        stdin=subprocess.DEVNULL,
        stderr=stderr,
        cwd=ROOT,
        env={**kept, **(env or {})},
        start_new_session=True,
    )
    os.close(stderr)
    return process


class Screen:
    """`poorhttp serve` whose standard error is a terminal, of so many columns."""

    def __init__(self, columns: int = 80, env: Mapping[str, str] | None = None) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.set_blocking(self._ours, False)
        self.process = start(theirs, env=env)
        self._seen = b""
        try:
            wait_for(lambda: READY.search(self.text()), "the ready line")
            self.port = int(self.text().partition("http://127.0.0.1:")[2].partition(" ")[0])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def text(self) -> str:
        """What was written by now, as a person gets it: colours and all."""
        # There is nothing now; or nobody has the other end any more.
        with suppress(OSError):
            while data := os.read(self._ours, 1 << 16):
                self._seen += data
        return self._seen.decode().replace("\r\n", "\n")

    def plain(self) -> str:
        return COLOUR.sub("", self.text())

    def get(self, target: str) -> int:
        with Connection(("127.0.0.1", self.port)) as connection:
            return connection.request("GET", target).status

    def hang_up(self) -> None:
        os.close(self._ours)
        self._ours = -1

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(HANG)
        if self._ours >= 0:
            self.text()
            self.hang_up()


# Lines


def test_a_line_for_each_request(mode: str) -> None:
    with Server(TALKER, mode, *SHOWN, tracebacks=True) as server:

        def wait_lines(count: int) -> None:
            wait_for(lambda: counted(server.log()) == count, "the lines")

        # Each is written behind its answer.
        server.get("/a/b?c=d")
        wait_lines(1)
        server.request("POST", "/form", body=b"x=1")
        wait_lines(2)
        server.get("/raise?mistake")
        wait_lines(3)
        with server.connect() as connection:
            connection.send(b"GET / HTTP/1.1\r\nHost : a\r\n\r\n")
            assert connection.response().status == 400
        wait_lines(4)
        assert [(line[0], line[1], line[4], line[5]) for line in LINE.findall(server.log())] == [
            ("GET", "200", "5 B", "/a/b?c=d"),
            ("POST", "200", "5 B", "/form"),
            ("GET", "500", "26 B", "/raise?mistake"),
            ("-", "400", "47 B", "(not understood)"),
        ]
        # Columns.
        assert len({match.start(6) - match.start() for match in LINE.finditer(server.log())}) == 1
        for number in range(5):
            server.get(f"/raise?number-{number}")
        wait_lines(9)
        for target in (b"/%1b[2J", b"/\x9b2J", b'/"a"', b"/caf\xc3\xa9", b"/\x1b[2J", b"/a b"):
            with server.connect() as connection:
                connection.send(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n")
                connection.response()
        wait_lines(15)
        log = server.log()
    # A request stands below its traceback.
    for number in range(5):
        traceback = log.index(f"ValueError: number-{number}\n")
        assert traceback < log.index(f"  /raise?number-{number}\n")
    # Nothing moves the cursor.
    assert all(character.isprintable() or character == "\n" for character in log), log
    assert "/%1b[2J" in targets(log)


# Repeats


def test_equal_requests_become_one_line(mode: str) -> None:
    with Server(TALKER, mode, "--workers", "1", *SHOWN, *NEVER_SLOW) as server:
        with server.connect() as connection:
            for number in range(13):
                connection.request("GET", f"/poll?time={number}")
            connection.request("POST", "/poll")
            connection.request("GET", "/other")
            connection.request("GET", "/other")
        wait_for(lambda: targets(server.log())[-1:] == ["/other"], "the lines")
        wait_for(lambda: counted(server.log()) == 16, "the rest of them")
        log = server.log()
    assert targets(log) == ["/poll?time=0", "/poll", "/other", "/other"]
    assert [int(found[0]) for found in MORE.findall(log)] == [12]
    lines = log.splitlines()
    [more] = [number for number, line in enumerate(lines) if MORE.match(line)]
    assert lines[more - 1].endswith("/poll?time=0")
    assert lines[more + 1].endswith("/poll")


def test_repeats_are_told_when_it_is_quiet_and_at_the_end() -> None:
    with Server(TALKER, "single", *SHOWN, *NEVER_SLOW) as server:
        connection = server.connect()
        for _ in range(3):
            connection.request("GET", "/poll")
        wait_for(lambda: counted(server.log()) == 3, "the repeats")
        assert len(MORE.findall(server.log())) == 1
        for _ in range(30):
            connection.request("GET", "/poll")
        server.leave()
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert counted(server.log()) == 33
        server.ended()


# Terminals


def test_colours_and_width() -> None:
    with Screen(columns=60) as screen:
        screen.get("/short")
        screen.get("/" + "long/" * 50)
        screen.get("/raise?x")
        wait_for(lambda: len(targets(screen.plain())) == 3, "the lines")
        text, plain = screen.text(), screen.plain()
    assert "\x1b[32m200\x1b[0m" in text
    assert "\x1b[1;31m500\x1b[0m" in text
    lines = [match[0] for match in LINE.finditer(plain)]
    assert len(lines[1]) == 60
    assert lines[1].endswith("...")
    # Nothing but colours.
    assert "\x1b" not in plain


@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)
def test_colours_as_the_environment_says(env: Mapping[str, str], coloured: bool) -> None:
    with Screen(env=env) as screen:
        screen.get("/")
        wait_for(lambda: targets(screen.plain()), "the line")
        assert ("\x1b" in screen.text()) == coloured


def test_the_server_goes_on_without_its_terminal() -> None:
    with Screen() as screen:
        screen.get("/before")
        wait_for(lambda: targets(screen.plain()) == ["/before"], "the line")
        screen.hang_up()
        for _ in range(3):
            assert screen.get("/after") == 200
        # The main process still acts.
        [old] = children(screen.process.pid)
        screen.process.send_signal(signal.SIGHUP)
        wait_for(lambda: children(screen.process.pid) not in ([old], []), "a new worker")
        wait_for(lambda: old not in children(screen.process.pid), "the end of the old one")
        assert screen.get("/later") == 200
        screen.process.terminate()
        assert screen.process.wait(HANG) == 0


def test_a_terminal_that_takes_nothing_holds_nobody_up() -> None:
    """Ctrl-S, or a pipe that nobody reads. What is lost is counted."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    process = start(write, "--mode", "single", "--admin", "127.0.0.1:0")
    seen: list[str] = []

    def log() -> str:
        with suppress(BlockingIOError):
            while data := os.read(read, 1 << 16):
                seen.append(data.decode())
        return "".join(seen)

    def lost() -> int:
        found = re.findall(r"(\d+) lines of the access log could not be written, and", log())
        return sum(map(int, found))

    try:
        wait_for(lambda: READY.search(log()), "the ready line")
        admin, port = map(int, re.findall(r"http://127\.0\.0\.1:(\d+)", log()))
        # More than terminal, main process, the pipe between and the worker have room for.
        filling = "/" + "x" * 2000
        with Connection(("127.0.0.1", port)) as connection:
            for number in range(2000):
                assert connection.request("GET", f"{filling}/{number}").status == 200
        # The main process has not waited either.
        with Connection(("127.0.0.1", admin)) as connection:
            assert connection.request("GET", "/-/live").status == 200
        wait_for(lambda: log().count(filling) + lost() == 2000, "all lines, or their number")
        assert lost()
    finally:
        process.terminate()
        wait_for(lambda: (log(), process.poll() is not None)[1], "the end")
        os.close(read)
    assert process.returncode == 0


# Settings


def test_it_needs_a_main_process() -> None:
    done = run_command("serve", TALKER, "--mode", "single", "--supervisor", "off", *SHOWN)
    assert done.returncode == 3
    assert "access_log = terminal" in done.stderr


def test_a_reload_may_turn_it_on_and_change_it(tmp_path: Path) -> None:
    file = tmp_path / "poorhttp.ini"
    file.write_text("[http]\n")
    with Server(TALKER, "single", "-c", str(file)) as server:
        server.get("/not-shown")

        def reload(text: str) -> None:
            times = server.log().count("reloaded")
            file.write_text(f"[http]\n{text}\n")
            server.process.send_signal(signal.SIGHUP)
            server.wait_log("reloaded", times + 1)

        reload("access_log = terminal")
        server.get("/shown")
        wait_for(lambda: targets(server.log()) == ["/shown"], "the line")
        reload("access_log = terminal\nslow_request = 0.000001")
        server.get("/slow")
        wait_for(lambda: len(targets(server.log())) == 2, "the line")
        assert LINE.findall(server.log())[1][3] == "!"
        reload("access_log = off")
        server.get("/not-shown")
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert "not-shown" not in server.log()
        server.ended()


# What the server says


def test_messages_stand_behind_what_was_before() -> None:
    with TemporaryFile() as file:
        terminal = Terminal([Settings()], file.fileno())
        # What the core writes about a request.
        line = b"[22/Nov/2026:00:24:23 +0000] 11 1 200 1234 900 GET /a\n"
        os.write(terminal.lines, line * 3)
        terminal.say("reloaded in 14 ms: shop/views.py\nand \x1b[2J", "good")
        terminal.close()
        first, more, said, rest = written(file).splitlines()
    assert first == "00:24:23 GET     200   0.9 ms    1.2 kB  /a"
    assert MORE.match(more)
    assert re.fullmatch(r"\d\d:\d\d:\d\d reloaded in 14 ms: shop/views\.py", said)
    assert rest == r"         and \x1b[2J"
