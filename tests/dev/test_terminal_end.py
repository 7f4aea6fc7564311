"""`poorhttp dev` in a terminal: what Ctrl-C leaves of it, and what its end leaves of the server."""

from __future__ import annotations

import os
import shlex
import signal
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pexpect
import psutil
import pytest

from tests.support.development import DEV, save
from tests.testkit.client import HANG, Connection
from tests.testkit.process import wait_for_end
from tests.testkit.server import command, environment, join, wait_for

APP = """
import os
def application(environ, start_response):
    if environ["PATH_INFO"] == "/stop":
        %s
    start_response("200 OK", [])
    return [str(os.getppid()).encode()]
"""

#: The first is readline's prompt. The second is one of a library that sets the modes itself.
PROMPTS = {
    "breakpoint": ("breakpoint()", r"\(Pdb\) "),
    "raw": (
        "import sys, termios, tty; tty.setraw(0, termios.TCSANOW); print('prompt: ', end='', "
        "file=sys.stderr, flush=True); os.read(0, 1)",
        "prompt: ",
    ),
}


def terminal(folder: Path, words: list[str], before: str = "") -> pexpect.spawn[str]:
    """A shell in a terminal of its own that runs a command, and stays when that has ended."""
    line = f"trap : INT QUIT; {before} {shlex.join(words)}; echo ended; read line"
    env = environment({"POORHTTP_BIND": "127.0.0.1:0", "TERM": "xterm"})
    return pexpect.spawn("/bin/sh", ["-c", line], HANG, cwd=folder, env=env, encoding="utf-8")


def port_of(ready: str) -> int:
    return int(ready.partition("listening on http://127.0.0.1:")[2].partition(" ")[0])


def ask(port: int, path: str = "/") -> bytes:
    with Connection(("127.0.0.1", port)) as connection:
        return connection.request("GET", path).body


@contextmanager
def at_prompt(folder: Path, words: list[str], kind: str) -> Iterator[pexpect.spawn[str]]:
    """A server with a request that waits at a prompt, which has the terminal without echo."""
    source, prompt = PROMPTS[kind]
    (folder / "app.py").write_text(APP % source)
    with terminal(folder, words) as child:
        child.expect(r"listening on .*\n")
        port = port_of(str(child.after))

        def get() -> None:
            with suppress(Exception):
                ask(port, "/stop")

        thread = threading.Thread(target=get)
        thread.start()
        child.expect(prompt)
        wait_for(lambda: not echoes(child), "the prompt without echo")
        yield child
        child.close()
        join(thread)


def echoes(child: pexpect.spawn[str]) -> bool:
    flags: int = termios.tcgetattr(child.child_fd)[3]
    return bool(flags & termios.ECHO and flags & termios.ICANON)


@pytest.mark.parametrize(
    ("kind", "number"), [("breakpoint", signal.SIGINT), ("raw", signal.SIGQUIT)]
)
def test_the_terminal_echoes_again(tmp_path: Path, kind: str, number: signal.Signals) -> None:
    with at_prompt(tmp_path, [*DEV], kind) as child:
        # A prompt that reads each character takes Ctrl-C as one.
        os.killpg(os.tcgetpgrp(child.child_fd), number)
        child.expect("ended")
        assert echoes(child)


@pytest.mark.parametrize("options", ["--supervisor off", ""])
def test_the_terminal_of_serve(tmp_path: Path, options: str) -> None:
    words = command("serve", "app:application", "--graceful-timeout", "0.5", *options.split())
    with at_prompt(tmp_path, words, "breakpoint") as child:
        for _ in range(2):
            child.sendintr()
        child.expect("ended")
        assert echoes(child)


#: A request for this goes on, whatever comes.
HANGS = """open('here', 'w').close()
        while True:
            try: input()
            except BaseException: pass
"""


def processes_of(session: int) -> set[int]:
    found = set()
    for pid in psutil.pids():
        with suppress(ProcessLookupError):
            found |= {pid} if os.getsid(pid) == session else set()
    return found


def test_ctrl_c_ends_everything_though_a_request_hangs(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP % HANGS)
    with terminal(tmp_path, [*DEV]) as child:
        child.expect(r"listening on .*\n")
        with Connection(("127.0.0.1", port_of(str(child.after)))) as client:
            client.send_request("GET", "/stop")
            wait_for((tmp_path / "here").exists, "the request")
            child.sendintr()
            child.expect("ended")
            assert "Traceback" not in str(child.before)
            shell = child.pid
            assert shell is not None
            wait_for(lambda: processes_of(shell) == {shell}, "the end of all but the shell")


def test_a_version_that_is_replaced_at_a_prompt(tmp_path: Path) -> None:
    with at_prompt(tmp_path, [*DEV, "--graceful-timeout", "0.5"], "breakpoint") as child:
        save(tmp_path / "app.py", APP % "pass")
        child.expect("reloaded")
        wait_for(lambda: echoes(child), "the terminal with echo")


@pytest.mark.parametrize("before", ["", "nohup", "setsid"])
def test_the_end_of_its_terminal(tmp_path: Path, before: str) -> None:
    """It ends with its terminal, unless it was started so that it does not."""
    (tmp_path / "app.py").write_text(APP % "pass")
    log = tmp_path / "log"
    with terminal(tmp_path, [*DEV], f"{before} sh -c 'exec \"$@\" >log 2>&1' sh"):
        wait_for(lambda: log.exists() and "listening on" in log.read_text(), "the server")
        port = port_of(log.read_text())
        pid = int(ask(port))
    # The terminal is closed, as a window or ssh does it, and the shell has ended.
    if before:
        try:
            save(tmp_path / "app.py", APP.replace("os.getppid()", "'new'") % "pass")
            # The end of the terminal may have reloaded it before.
            wait_for(lambda: ask(port) == b"new", "the new version")
        finally:
            os.kill(pid, signal.SIGTERM)
    wait_for_end(pid)
