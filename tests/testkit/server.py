"""The server and other programs as processes under test; the list of modes that tests run in."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tests.testkit import forked
from tests.testkit.client import HANG, Connection, Response
from tests.testkit.forked import ForkedProcess

if TYPE_CHECKING:
    from typing_extensions import Self

ROOT = forked.ROOT

#: The options that start each mode as the tests want it.
MODES: Mapping[str, tuple[str, ...]] = {
    "single": ("--mode", "single"),
    "forking": ("--mode", "forking", "--workers", "2"),
    "threading": ("--mode", "threading"),
    "gevent": ("--mode", "gevent"),
}

#: Requests that each mode runs at once, started so. Of thousands of greenlets, 50 are enough.
AT_ONCE = {"single": 1, "forking": 2, "threading": 8, "gevent": 50}

#: With its end: an unbuffered standard error may be given that by a write of its own.
READY = re.compile(r"^poorhttp (\S+) listening on (.+) \((\w+), (\d+) workers?\)\n", re.MULTILINE)


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait until `condition()` holds; an AssertionError that names `what` if it never does."""
    start = time.monotonic()
    while not condition():
        waited = time.monotonic() - start
        assert waited < HANG, f"{what}: not in {HANG:.0f} seconds"
        # What takes longer is looked at less often: tests beside this one need the processor.
        time.sleep(min(0.02, max(0.002, waited / 10)))


def join(*threads: threading.Thread) -> None:
    """Wait until threads have ended; an AssertionError that names the one that never does."""
    for thread in threads:
        thread.join(HANG)
        assert not thread.is_alive(), f"{thread} has not ended in {HANG:.0f} seconds"


def mode_options(mode: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The options that start `mode`, without a number of workers where `options` has one."""
    words = MODES.get(mode, ("--mode", mode))
    return words[:2] if "--workers" in options else words


def alone(mode: str) -> tuple[str, ...]:
    """The option of a server without main process, which takes half of the time to start and stop.

    Not in `forking`, which has more than one worker here.
    """
    return () if mode == "forking" else ("--supervisor", "off")


def command(*arguments: str) -> list[str]:
    """The command line of the server with `arguments`, under the Python that runs the tests."""
    return [*forked.INTERPRETER, "-m", "poorhttp", *arguments]


#: The command line of the server, without arguments.
OURS = command()


def patched(module: str, **values: object) -> tuple[str, ...]:
    """Launcher of a server in which constants of a module, mostly periods, have other values."""
    code = (
        f"import sys, {module} as module; vars(module).update({values!r}); "
        "from poorhttp.cli import main; sys.argv = sys.argv[5:]; sys.exit(main())"
    )
    return (sys.executable, "-c", code)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a server: nothing of the tester's own configuration."""
    theirs = (
        *("POORHTTP_", "PORT", "WEB_CONCURRENCY", "GUNICORN_"),
        *("PYTHONWARNINGS", "PYTHONDEVMODE", "PYTHONDONTWRITEBYTECODE"),
    )
    kept = {key: value for key, value in os.environ.items() if not key.startswith(theirs)}
    return {**kept, "PYTHONPATH": str(ROOT), **(extra or {})}


def run(
    *words: str | Path,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    timeout: float = HANG,
    inherit: Sequence[int] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `env` is what it has beside `environment()`."""
    return subprocess.run(
        words,
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        pass_fds=inherit,
    )


def written(file: IO[bytes], start: int = 0) -> str:
    """What processes have written to `file`, from byte `start` on."""
    size = os.fstat(file.fileno()).st_size
    # By position: they write at the offset that they share with us, so it must not be moved.
    return os.pread(file.fileno(), size - start, start).decode("utf-8", "backslashreplace")


def stop_all(servers: Iterable[Server]) -> None:
    """Stop servers beside each other; an AssertionError that names the faults of all of them."""
    servers = list(servers)
    for server in servers:
        server.leave()
    with ThreadPoolExecutor() as pool:
        stopping = [pool.submit(server.stop) for server in servers]
    faults = [str(fault) for each in stopping if (fault := each.exception())]
    assert not faults, "\n".join(faults)


class Program:
    """A command as a process, with what it writes in files; killed at the end of its block.

    A command of ours is a fork (`tests.testkit.forked`), if that makes no difference.
    `merged` writes standard output and standard error to one file, which is its log.
    """

    #: Whether commands of ours are forks.
    forks = True

    def __init__(
        self,
        *words: str | Path,
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
        inherit: tuple[int, ...] = (),
        merged: bool = False,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.process: subprocess.Popen[bytes] | ForkedProcess
        # Closed when the program has been stopped, or killed.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self._stdout = self._stderr if merged else tempfile.TemporaryFile()  # noqa: SIM115
        # A process group of its own, so that kill() reaches its workers too.
        if self.forks and list(words[: len(OURS)]) == OURS and forked.can_fork(env) and not inherit:
            self.process = ForkedProcess(
                words[len(OURS) :],
                stdout=self._stdout.fileno(),
                stderr=self._stderr.fileno(),
                cwd=cwd,
                env=environment(env),
            )
        else:
            self.process = subprocess.Popen(
                words,
                stdout=self._stdout,
                stderr=self._stderr,
                stdin=stdin,
                cwd=cwd,
                env=environment(env),
                pass_fds=inherit,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.kill()

    # What it says

    def log(self, start: int = 0) -> str:
        """What it has written to standard error, from byte `start` on."""
        return written(self._stderr, start)

    def log_size(self) -> int:
        """Bytes that it has written to standard error."""
        return os.fstat(self._stderr.fileno()).st_size

    def output(self) -> str:
        """What it has written to standard output."""
        return written(self._stdout)

    def wait_log(self, text: str, times: int = 1) -> None:
        """Wait until `text` stands in the log `times` times."""
        try:
            wait_for(lambda: self.log().count(text) >= times, f"{text!r} in the log {times} times")
        except AssertionError as error:
            raise AssertionError(f"{error}; the log is:\n{self.log()}") from None

    def wait_line(self, pattern: re.Pattern[str] = READY) -> re.Match[str]:
        """Wait for a line of the log, the ready line; kill the program that ends before."""
        try:
            wait_for(
                lambda: pattern.search(self.log()) or self.process.poll() is not None,
                f"{pattern.pattern} from {self.process.args!r}",
            )
            found = pattern.search(self.log())
            code = self.process.returncode
            assert found, f"no {pattern.pattern}, exit code {code}:\n{self.log()}"
        except BaseException:
            self.kill()
            raise
        return found

    # Ending it

    def wait(self) -> int:
        """Wait for its end; the exit code."""
        if isinstance(self.process, ForkedProcess):
            return self.process.wait(HANG)
        if self.process.poll() is None:
            # `Popen.wait` with a limit looks every 50 ms only.
            ended = os.pidfd_open(self.process.pid)
            try:
                select.select([ended], [], [], HANG)
            finally:
                os.close(ended)
        return self.process.wait(0)

    def kill(self) -> None:
        """End it without ceremony."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(HANG)
        self._close()

    def _close(self) -> None:
        self._stdout.close()
        self._stderr.close()


class Server(Program):
    """`poorhttp serve APP ...` on a free port of 127.0.0.1, started and waited for.

    `tracebacks` tells that this one is meant to log some; with any other server that is a failure.
    `launcher` is a command that executes the one which stands behind it, `verb` what stands in the
    place of `serve`.
    """

    def __init__(
        self,
        app: str,
        mode: str = "threading",
        *options: str,
        bind: tuple[str, ...] = ("127.0.0.1:0",),
        tracebacks: bool = False,
        inherit: tuple[int, ...] = (),
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        launcher: tuple[str, ...] = (),
        verb: str = "serve",
    ) -> None:
        binds = [argument for address in bind for argument in ("--bind", address)]
        words = command(verb, app, *binds, *mode_options(mode, options), *options)
        self._start(*launcher, *words, tracebacks=tracebacks, inherit=inherit, env=env, cwd=cwd)

    def _start(
        self,
        *words: str,
        cwd: Path,
        env: Mapping[str, str] | None,
        tracebacks: bool,
        inherit: tuple[int, ...] = (),
    ) -> None:
        """Start the command of a server, and read its ready line."""
        self.tracebacks = tracebacks
        self._connections: list[Connection] = []
        # One that only ends because of this limit, hangs.
        env = {"POORHTTP_GRACEFUL_TIMEOUT": "600", **(env or {})}
        super().__init__(*words, cwd=cwd, env=env, inherit=inherit)
        self.version, self.urls, self.mode, workers = self.wait_line().groups()
        self.workers = int(workers)
        ports = re.findall(r"(?:https?|tcp)://[\d.]+:(\d+)", self.urls)
        self.port = int(ports[0]) if ports else 0

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and not self._stdout.closed:
            self.leave()
            self.stop()
        else:
            self.kill()

    # Talking to it

    def connect(self) -> Connection:
        """A new connection; it is closed with the server, if not before."""
        connection = Connection(("127.0.0.1", self.port))
        self._connections.append(connection)
        return connection

    def port_of(self, scheme: str) -> int:
        """The port of 127.0.0.1 at which it speaks `http`, `https`, `uwsgi` and so on."""
        found = re.search(rf"\b{scheme}://127\.0\.0\.1:(\d+)", self.urls)
        assert found, self.urls
        return int(found[1])

    def is_refusing(self) -> bool:
        """Whether nobody listens at its port any more."""
        try:
            self.connect().close()
        except ConnectionRefusedError:
            return True
        return False

    def enter(self, gate: Path, path: str = "/wait") -> Connection:
        """A connection whose request waits in the application until the file `gate` exists."""
        connection = self.connect()
        connection.send_request("GET", f"{path}?{gate}")
        self.wait_log(f"entered {gate}\n")
        return connection

    def request(
        self, method: str, target: str, *headers: str, body: bytes | None = None
    ) -> Response:
        """The answer to one request on a connection of its own."""
        with self.connect() as connection:
            return connection.request(method, target, *headers, body=body)

    def get(self, target: str, *headers: str) -> Response:
        """The answer to one GET on a connection of its own."""
        return self.request("GET", target, *headers)

    # Ending it

    def leave(self) -> None:
        """Close the connections, or a stop would wait for idle ones until `drain_timeout`."""
        for connection in self._connections:
            connection.close()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop it as an administrator does, and check that it went well."""
        assert self.process.poll() is None, f"the server ended by itself:\n{self.log()}"
        self.process.send_signal(number)
        try:
            code = self.wait()
        except subprocess.TimeoutExpired:
            log = self.log()
            self.kill()
            raise AssertionError(f"the server does not stop:\n{log}") from None
        assert code == 0, f"exit code {code}:\n{self.log()}"
        self.ended()

    def ended(self) -> None:
        """Check what it has left behind in the log, now that it has ended."""
        log = self.log()
        self._close()
        if not self.tracebacks:
            assert "Traceback" not in log, log
        # A panic of the core would be hidden by its restart.
        assert "panicked at" not in log, log
        # wsgiref.validate's complaint about an iterable whose close() was never called.
        assert "without being closed" not in log, log

    def _close(self) -> None:
        self.leave()
        super()._close()
