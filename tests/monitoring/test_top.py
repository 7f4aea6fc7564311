"""`poorhttp top` in a terminal: what it shows, keys, sizes, and how it ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest
from pexpect import EOF, TIMEOUT, spawn

from tests.support.admin_address import Admin
from tests.support.forked_command import run_command
from tests.testkit.client import HANG
from tests.testkit.server import ROOT, Server, command, environment, wait_for

APP = "tests/apps/watched.py"

#: What a terminal is told at the beginning and at the end: another screen, and back.
OTHER_SCREEN, BACK = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """A program in a terminal, which is drawn as a person sees it."""

    def __init__(self, *words: str, **env: str) -> None:
        self.screen = pyte.Screen(120, 30)
        self._stream = pyte.ByteStream(self.screen)
        self.written = b""
        self._program: spawn[bytes] = spawn(
            words[0],
            list(words[1:]),
            dimensions=(30, 120),
            cwd=str(ROOT),
            env=environment({"TERM": "xterm-256color", **env}),
            timeout=HANG,
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._program.close(force=True)

    def text(self) -> str:
        """What the terminal shows."""
        self._read()
        return "\n".join(self.screen.display)

    def _read(self) -> bool:
        """Receive what was written; return whether the program still has the terminal."""
        try:
            while True:
                piece = self._program.read_nonblocking(1 << 16, 0.02)
                self.written += piece
                self._stream.feed(piece)
        except TIMEOUT:
            return True
        except EOF:
            return False

    def wait_text(self, text: str) -> None:
        try:
            wait_for(lambda: text in self.text(), f"{text!r} in the terminal")
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{self.text()}") from None

    def press(self, keys: str) -> None:
        self._program.send(keys)

    def resize(self, columns: int, lines: int) -> None:
        self._read()
        self.screen.resize(lines, columns)
        self._program.setwinsize(lines, columns)

    def signal(self, number: signal.Signals) -> None:
        self._program.kill(number)

    def end(self) -> int:
        """Wait for the end; the exit code. The terminal is as it was."""
        wait_for(lambda: not self._read(), "the end")
        self._program.close()
        assert self.written.count(OTHER_SCREEN) == self.written.count(BACK) == 1
        assert b"\x1b[?25h" in self.written.rpartition(b"\x1b[?25l")[2]
        code = self._program.exitstatus
        assert code is not None, f"ended by signal {self._program.signalstatus}"
        return code


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    """A server that has answered, failed, and works on something."""
    gate = tmp_path_factory.mktemp("top") / "gate"
    options = ("--admin", "127.0.0.1:0", "--workers", "2", "--threads", "3")
    with Server(APP, "threading", *options) as server:
        for number in range(9):
            assert server.get(f"/number-{number}").status == 200
        assert server.get("/broken?status=500").status == 500
        with server.connect() as connection:
            connection.send(b"GET /\0 HTTP/1.1\r\nHost: test\r\n\r\n")
            assert connection.response().status == 400
        hostile = "/<b>%1b[31m%e2%80%ae"
        waiting = server.connect()
        waiting.send_request("GET", f"{hostile}?until={gate}")
        server.wait_log(f"entered {gate}\n")
        yield Admin(server)
        gate.touch()
        assert waiting.response().status == 200


def top(admin: Admin, **env: str) -> Terminal:
    return Terminal(*command("top", "--admin", admin.url.removeprefix("http://")), **env)


def test_tables_and_keys(admin: Admin) -> None:
    """Each table, sorted by any column; help and the end."""
    with top(admin) as terminal:
        terminal.wait_text("workers: 1–2 of 2")
        shown = terminal.text()
        assert ": ready; poorhttp " in shown.splitlines()[0]
        assert "1/6 in flight" in shown
        assert "2/2 workers" in shown
        # What is being worked on, with what might control the terminal escaped.
        assert " GET /<b>%1b[31m" in shown
        assert "CPU↓" in shown
        terminal.press("r")
        terminal.wait_text("requests in flight: 1–1 of 1")
        terminal.wait_text("time↓")
        assert "GET /<b>%1b[31m%e2%80%ae?until=" in terminal.text()
        terminal.press(">")
        terminal.wait_text("service↑")
        terminal.press("\x1bOC")
        terminal.wait_text("PID↓")
        terminal.press("i")
        terminal.wait_text("PID↑")
        terminal.press("\x1bOD")
        terminal.wait_text("service↑")
        terminal.press("s")
        terminal.wait_text("slowest requests: ")
        terminal.press("e")
        terminal.wait_text("errors: ")
        terminal.press("f")
        terminal.wait_text("refusals: 1–1 of 1")
        assert " 400  " in terminal.text()
        terminal.press("e")
        terminal.wait_text("errors: ")
        terminal.press("h")
        terminal.wait_text("refresh more or less often")
        terminal.press("x")
        terminal.wait_text("errors: ")
        terminal.press(" ")
        terminal.wait_text("ready, paused;")
        terminal.press(" ")
        terminal.wait_text(": ready; ")
        terminal.press("q")
        assert terminal.end() == 0


def test_any_size(admin: Admin) -> None:
    """A window that changes, down to one in which nothing has room."""
    with top(admin) as terminal:
        terminal.wait_text("workers: 1–2 of 2")
        assert "connections" in terminal.text()
        for columns, lines, text in (
            (60, 12, "works on"),
            (200, 50, "connections"),
            (20, 5, ": ready"),
            (3, 2, ""),
            (1, 1, ""),
            (100, 30, "workers: 1–2 of 2"),
        ):
            terminal.resize(columns, lines)
            terminal.wait_text(text)
        terminal.press("q")
        assert terminal.end() == 0


@pytest.mark.parametrize("how", ["q", "\x03", "TERM", "HUP"])
def test_the_end(admin: Admin, how: str) -> None:
    """The terminal is as it was, however the view ends."""
    with top(admin) as terminal:
        terminal.wait_text("workers: 1–2 of 2")
        if how in ("TERM", "HUP"):
            number = signal.Signals[f"SIG{how}"]
            terminal.signal(number)
            assert terminal.end() == 128 + number
        else:
            terminal.press(how)
            assert terminal.end() == 0


def test_a_server_that_ends(folder: Path) -> None:
    """What was known stays on the screen, with the reason; a server that comes back is shown."""
    path = folder / "admin"
    words = command("top", "--admin", f"unix:{path}")
    with Server(APP, "single", "--admin", f"unix:{path}"):
        terminal = Terminal(*words)
        terminal.wait_text("ready; poorhttp")
    with terminal:
        terminal.wait_text(f"silent, no server answers at unix:{path}")
        assert "workers: " in terminal.text()
        with Server(APP, "single", "--admin", f"unix:{path}"):
            terminal.wait_text("ready; poorhttp")
        terminal.press("q")
        assert terminal.end() == 0


def test_no_terminal_and_one_that_nobody_knows(admin: Admin) -> None:
    found = run_command("top", "--admin", admin.url.removeprefix("http://"))
    assert found.returncode == 2
    assert "top needs a terminal; `poorhttp ctl status` prints once" in found.stderr
    with top(admin, TERM="no-such-terminal") as terminal:
        terminal.wait_text("poorhttp: top cannot use this terminal (TERM): ")
