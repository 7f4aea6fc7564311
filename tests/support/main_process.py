"""A main process controlled by commands: forks workers over a socket and retires them.

Run as a program (`python -m tests.support.main_process MODE OPTION=VALUE ...`) it takes lines from
its standard input: `start` forks a worker, `say PID BYTES` says something to it, `leave PID` closes
the channel to it, `kill PID NUMBER` sends it a signal. It prints `URL listens`, and then what
happens: `PID started`, `PID said OCTETS`, `PID ended CODE`.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from poorhttp import logs
from poorhttp._core import fork_for_server
from poorhttp.config.settings import Settings
from poorhttp.net import sockets
from poorhttp.plugins.dev.live_reload import LiveReload, script
from poorhttp.plugins.dev.options import PREFIX
from poorhttp.process.worker_context import WorkerContext
from poorhttp.supervisor.scoreboard import Scoreboard
from poorhttp.targets.routes import Routes
from poorhttp.worker import mode
from poorhttp.worker.stop_signals import StopSignals
from poorhttp.worker.worker import Worker
from tests.testkit.client import HANG, Connection
from tests.testkit.server import ROOT, environment, wait_for, written

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

#: Places for workers that live at the same time.
PLACES = 64


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with process, path and body; a path that names a file is waited for.

    Below /begun the answer is begun before that, and its rest comes afterwards.
    """
    path = environ["PATH_INFO"]
    text = b"%d %s %s" % (os.getpid(), path.encode(), environ["wsgi.input"].read())
    begun = path.startswith("/begun/")
    gate = path.removeprefix("/begun")
    length = len(text) + (1 if begun else 0)
    write = start_response("200 OK", [("Content-Length", str(length))])
    if begun:
        write(text)
    if gate.startswith("/tmp/"):
        environ["wsgi.errors"].write(f"entered {gate}\n")
        while not os.path.exists(gate):
            time.sleep(0.002)
    return [b"!" if begun else text]


def main(mode_name: str, *options: str) -> None:
    """Be the main process until standard input ends; then wait for the workers."""
    given = dict(option.split("=", 1) for option in options)
    recycle_after = int(given.pop("recycle_after", "0"))
    settings = Settings(mode=mode_name, **{"bind": "127.0.0.1:0", **given})
    (listener,) = sockets.open_listeners(settings)
    scoreboard = Scoreboard(PLACES)
    run_mode = mode.load(settings)
    live = settings.is_enabled("live")
    app: WSGIApplication = LiveReload(application, "1") if live else application
    routes = Routes(settings, app).table([PREFIX] if live else [])
    channels: dict[int, socket.socket] = {}
    places: dict[int, int] = {}
    print(listener.url, "listens", flush=True)

    def start() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        place = scoreboard.take()
        status = scoreboard.open(place)
        pid = fork_for_server()
        if pid == 0:
            ours.close()
            for channel in channels.values():
                channel.close()
            mode.prepare(run_mode, settings)
            logs.error_log.open(settings)
            context = WorkerContext(
                place, place, theirs.fileno(), scoreboard.memory, status, recycle_after
            )

            def ready() -> None:
                theirs.send(b"+")
                theirs.close()

            with StopSignals(settings, supervised=True) as signals:
                worker = Worker(
                    app,
                    settings,
                    [listener],
                    context,
                    routes=routes,
                    appended=script("1") if live else None,
                    ready=ready,
                    signals=signals,
                )
                run_mode.run(worker)
            os._exit(0)
        theirs.close()
        channels[pid] = ours
        places[pid] = place
        print(pid, "started", flush=True)

    def listen() -> None:
        for pid, channel in list(channels.items()):
            if channel in readable:
                try:
                    said = channel.recv(64)
                except ConnectionResetError:
                    said = b""
                if said:
                    print(pid, "said", said.decode(), flush=True)
                else:
                    channels.pop(pid).close()

    def bury() -> None:
        for pid in list(places):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                scoreboard.free(places.pop(pid))
                print(pid, "ended", os.waitstatus_to_exitcode(status), flush=True)

    commands = ""
    readable: list[int | socket.socket] = []
    while True:
        sources: list[int | socket.socket] = [0, *channels.values()]
        readable, _, _ = select.select(sources, [], [], 0.01 if places else None)
        listen()
        bury()
        if 0 in readable:
            more = os.read(0, 4096).decode()
            if not more:
                return
            *lines, commands = (commands + more).split("\n")
            for line in lines:
                match line.split():
                    case ["start"]:
                        start()
                    case ["say", pid, octets]:
                        channels[int(pid)].send(octets.encode())
                    case ["leave", pid]:
                        channels.pop(int(pid)).close()
                    case ["kill", pid, number]:
                        os.kill(int(pid), int(number))


class MainProcess:
    """That program, and what it has printed so far."""

    def __init__(self, mode: str, *options: str) -> None:
        # Closed at the end of the block.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.main_process", mode, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=ROOT,
            env=environment(),
            start_new_session=True,
        )
        self._printed: list[str] = []
        self._rest = ""
        self._connections: list[Connection] = []
        try:
            self.port = int(self.expect("listens").split()[0].rpartition(":")[2])
        except BaseException:
            self.kill()
            raise

    def __enter__(self) -> MainProcess:
        return self

    def __exit__(self, *_: object) -> None:
        log = self.log()
        self.kill()
        assert "panicked at" not in log, log
        assert "Traceback" not in log, log

    def kill(self) -> None:
        """End all of it."""
        for connection in self._connections:
            connection.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate(timeout=HANG)
        self._stderr.close()

    def log(self) -> str:
        """What it and its workers have written to standard error."""
        return written(self._stderr)

    def connect(self) -> Connection:
        """A new connection, closed at the end if not before."""
        connection = Connection(("127.0.0.1", self.port))
        self._connections.append(connection)
        return connection

    def tell(self, *words: object) -> None:
        """Give it a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        self._process.stdin.flush()

    def has_printed(self, text: str) -> bool:
        """Whether a line with `text` was there that nobody has expected yet."""
        assert self._process.stdout is not None
        while select.select([self._process.stdout], [], [], 0)[0]:
            more = os.read(self._process.stdout.fileno(), 4096).decode()
            if not more:
                break
            *lines, self._rest = (self._rest + more).split("\n")
            self._printed += lines
        return any(text in line for line in self._printed)

    def expect(self, text: str) -> str:
        """Wait for a line with `text`; the line."""
        try:
            wait_for(lambda: self.has_printed(text) or self._process.poll() is not None, text)
            assert self.has_printed(text), f"no {text}, exit code {self._process.returncode}"
        except AssertionError as error:
            raise AssertionError(f"{error}; {self._printed}; the log is:\n{self.log()}") from None
        line = next(line for line in self._printed if text in line)
        self._printed.remove(line)
        return line

    def start(self) -> int:
        """Start a worker, and wait until it serves; its process."""
        self.tell("start")
        pid = int(self.expect("started").split()[0])
        self.expect(f"{pid} said +")
        return pid

    def retire(self, pid: int) -> None:
        """Retire a worker, and wait until it has heard so."""
        self.tell("say", pid, "r")
        self.stopped(pid)

    def stop(self, pid: int, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop a worker by a signal, and wait until it has heard so."""
        self.tell("kill", pid, int(number))
        self.stopped(pid)

    def stopped(self, pid: int) -> None:
        """Wait until a worker does not listen any more."""
        wait_for(lambda: not self._listens(pid), f"process {pid} stops to listen")

    def _listens(self, pid: int) -> bool:
        listening = f":{self.port:04X} 00000000:0000 0A "
        inodes = {
            f"socket:[{line.split()[9]}]"
            for line in Path("/proc/net/tcp").read_text().splitlines()
            if listening in line
        }
        try:
            return any(os.readlink(fd) in inodes for fd in Path(f"/proc/{pid}/fd").iterdir())
        except FileNotFoundError:
            # One was closed meanwhile, or all were.
            return Path(f"/proc/{pid}/fd").exists()
        except PermissionError:
            # It has ended, and its parent has not noticed yet: only root may look there.
            return False

    def replace(self, pid: int) -> int:
        """Start another worker, and only then retire this one."""
        other = self.start()
        self.retire(pid)
        return other

    def has_ended(self, pid: int) -> bool:
        """Whether a worker has ended."""
        return self.has_printed(f"{pid} ended")

    def ended(self, pid: int) -> None:
        """Wait for the end of a worker, which must be a good one."""
        self.expect(f"{pid} ended 0")

    def entered(self, path: object) -> None:
        """Wait until a request for the file `path` has entered the application."""
        wait_for(lambda: f"entered {path}\n" in self.log(), f"a request for {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
