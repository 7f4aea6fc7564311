"""Signals to stop at any moment: while it starts, loads, serves, or ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from poorhttp.config.settings import Settings
from poorhttp.errors import Stopped
from poorhttp.worker.stop_signals import StopSignals
from tests.supervisor.stops import wait_end, wait_refusing
from tests.support.each_value import DIFFERENT, each_value
from tests.support.library_program import LibraryProgram
from tests.testkit.client import BadResponse, Closed
from tests.testkit.server import Program, Server, command, mode_options

if TYPE_CHECKING:
    from poorhttp._core import Reactor

ROBUST = "tests/apps/robust.py"
GATE = "tests/apps/gate.py"

IMPORTING = """\
import sys, time
sys.stderr.write("importing\\n")
sys.stderr.flush()
while True:
    time.sleep(0.01)
"""


@pytest.mark.parametrize(("mode", "number"), each_value(DIFFERENT, [1, 2]), indirect=["mode"])
def test_term_during_import(mode: str, number: int, folder: Path) -> None:
    (folder / "importing.py").write_text(IMPORTING)
    options = ("--workers", str(number))
    path = folder / "socket"
    more = (*mode_options(mode, options), *options)
    words = command("serve", "importing.py", "--bind", f"unix:{path}", *more)
    with Program(*words, cwd=folder) as program:
        program.wait_log("importing")
        assert path.exists()
        program.process.terminate()
        assert (program.wait(), program.log()) == (0, "importing\n")
        assert not path.exists(), "the socket's file is left"


@pytest.mark.each_mode
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_port_is_closed_while_requests_are_in_flight(
    mode: str, number: signal.Signals, tmp_path: Path
) -> None:
    """Ctrl-C reaches the workers twice: from the terminal, and from their supervisor."""
    with Server(GATE, mode, "--workers", "2") as server:
        connection = server.enter(gate := tmp_path / "gate")
        signalled = os.killpg if number == signal.SIGINT else os.kill
        signalled(server.process.pid, number)
        wait_refusing(server)
        gate.touch()
        assert connection.response().json() == "waited"
        wait_end(server)


@pytest.mark.parametrize(("mode", "number"), each_value(DIFFERENT, ["1", "2"]), indirect=["mode"])
def test_second_term_ends_it_at_once(mode: str, number: str, tmp_path: Path) -> None:
    with Server(GATE, mode, "--workers", number) as server:
        connection = server.enter(tmp_path / "never")
        server.process.terminate()
        wait_refusing(server)
        server.process.terminate()
        assert server.wait() == 0, server.log()
        assert f"was killed: request 1 GET /wait?{tmp_path / 'never'}\n" in server.log()
        with pytest.raises((Closed, BadResponse)):
            connection.response()
        server.ended()


def test_signal_handler_that_raises(mode: str) -> None:
    with Server(ROBUST, mode, tracebacks=True) as server:
        for times in range(1, 4):
            server.process.send_signal(signal.SIGUSR1)
            server.wait_log("usr1 came\n", times)
            assert server.get("/pid").status == 200
            assert "is replaced" not in server.log()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM])
def test_signals_until_the_main_process_has_ended(number: int, tmp_path: Path) -> None:
    """As from logrotate or a second `systemctl stop`: they change neither exit code nor files."""
    path = tmp_path / "pid"
    words = command("serve", ROBUST, "--bind", "127.0.0.1:0", "--pidfile", str(path))
    with Program(*words) as program:
        program.wait_line()
        assert path.exists()
        program.process.terminate()
        while program.process.poll() is None:
            program.process.send_signal(number)
            time.sleep(0.001)
        assert program.wait() == 0
        assert not path.exists()


PROGRAM = """
import json, signal, time
import poorhttp

def mine(number, frame):
    print("mine", number)

def application(environ, start_response):
    start_response("200 OK", [])
    return [b"hello"]

numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGALRM, signal.SIGCHLD]
for number in numbers:
    signal.signal(number, mine)
poorhttp.serve(application, bind="127.0.0.1:0", mode={mode!r}, graceful_timeout=0.4)
changed = [number.name for number in numbers if signal.getsignal(number) is not mine]
timer = signal.getitimer(signal.ITIMER_REAL)
wakeup = signal.set_wakeup_fd(-1)
blocked = [number.name for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
time.sleep(0.7)
print(json.dumps([changed, timer, wakeup, blocked]))
"""


@pytest.mark.each_mode
def test_program_lives_on_after_serve(mode: str) -> None:
    """serve() leaves neither its alarm nor its signal handlers behind."""
    with LibraryProgram(PROGRAM.format(mode=mode)) as program:
        # Changed handlers, the timer, the wakeup descriptor, what is blocked.
        assert json.loads(program.terminate()) == [[], [0, 0], -1, []]


class Thing:
    """Something that can be referred to weakly."""


def test_a_stop_that_is_lost_in_a_callback_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda one: lost.append(one.exc_type))
    with StopSignals(Settings(), supervised=True) as signals:
        thing = Thing()
        reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGTERM))
        # Python goes on behind a callback that raises.
        del thing
        assert reference() is None
        with pytest.raises(Stopped):
            signals.attach(cast("Reactor", None))
        assert lost == []
        # Faults of others are still reported.
        thing = Thing()
        reference = weakref.ref(thing, lambda _: 1 // 0)
        del thing
    assert lost == [ZeroDivisionError]
