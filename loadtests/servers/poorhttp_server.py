"""`poorhttp serve` as a process: started, awaited by its ready line, read by its log, stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from loadtests.errors import ServerFailure
from loadtests.measure.process_tree import ProcessTree, have_ended
from loadtests.measure.waiting import HANG, wait_until
from loadtests.python_path import lab_folder, server_command

if TYPE_CHECKING:
    from typing_extensions import Self

READY = re.compile(r"^poorhttp \S+ listening on (.+) \(\w+, (\d+) workers?\)\n", re.MULTILINE)
"""The line of the log with which a server says that it is ready."""


class PoorhttpServer:
    """A server of `target` that is ready when this is made; killed at the end of its block.

    `launcher` is a command that runs the one behind it, in `folder` (default: that of the lab).
    Without a `bind` in the options it takes a free port of 127.0.0.1. Raises ServerFailure if it
    does not come up.

    Attributes:
        process: the first main process.
        main: the present one.
        port: where it listens first.
        workers: how many it has.
    """

    def __init__(
        self,
        target: str,
        *options: str,
        bind: str = "127.0.0.1:0",
        environ: Mapping[str, str] | None = None,
        launcher: Sequence[str] = (),
        folder: Path | None = None,
    ) -> None:
        # Closed when it has ended.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        command = [*launcher, *server_command(), "serve", target, "--bind", bind]
        self._tree = ProcessTree(
            [*command, *options],
            cwd=folder or lab_folder(),
            env={**_environment(), **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
        )
        self.process = self._tree.__enter__().popen
        try:
            wait_until(lambda: bool(self._ready()) or self.process.poll() is not None, HANG)
            if not (found := self._ready()):
                code = self.process.poll()
                raise ServerFailure(f"it is not ready, exit code {code}:\n{self.log()}")
        except BaseException:
            self.kill()
            raise
        self.main = self.process.pid
        self.ports = {
            scheme: int(port) for scheme, port in re.findall(r"(https?)://[^\s,]*:(\d+)", found[1])
        }
        self.port = int(found[1].split()[0].rstrip("/,").rpartition(":")[2])
        self.workers = int(found[2])

    def _ready(self) -> re.Match[str] | None:
        return READY.search(self.log())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def log(self) -> str:
        """What it has written to standard error."""
        # By position: its processes write at the offset that they share with this one.
        file = self._log.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode("utf-8", "backslashreplace")

    def upgrade(self, pidfile: Path, seconds: float) -> None:
        """Another main process takes over (USR2), while the old one finishes its requests.

        Raises ServerFailure if that does not go well.
        """
        old, new = self.main, self.main
        os.kill(old, signal.SIGUSR2)

        def taken_over() -> bool:
            nonlocal new
            new = int(pidfile.read_text(encoding="ascii"))
            return new != old

        if not wait_until(taken_over, seconds):
            raise ServerFailure(f"{old} has not handed over in {seconds:.0f} s:\n{self.log()}")
        self.main = new

    def lives(self) -> bool:
        """Whether the main process has not ended."""
        return not have_ended([self.main], 0)

    def how_it_ended(self) -> str:
        """The exit code of the present main process, or its signal, and what the server said.

        The code is not known of one that has taken over, unless this process adopts those whose
        parent has ended.
        """
        code = self.process.poll()
        if self.main != self.process.pid:
            code = None
            with suppress(ChildProcessError):
                options = os.WEXITED | os.WNOHANG | os.WNOWAIT
                if (ended := os.waitid(os.P_PID, self.main, options)) is not None:
                    exited = ended.si_code == os.CLD_EXITED
                    code = ended.si_status if exited else -ended.si_status
        return f"exit code {code}:\n{self.log()}"

    def stop(self, number: signal.Signals = signal.SIGTERM, *, tracebacks: bool = False) -> None:
        """Stops it as an administrator does. Raises ServerFailure if that does not go well.

        `tracebacks` says that its application was meant to fail.
        """
        if not self.lives():
            raise ServerFailure(f"it ended by itself, {self.how_it_ended()}")
        os.kill(self.main, number)
        try:
            if not have_ended([self.main], HANG):
                raise ServerFailure(f"it does not stop in {HANG:.0f} s:\n{self.log()}")
            # Of one that has taken over this is not the parent.
            code, log = self.process.wait(), self.log()
            # A panic of the core would be hidden by its restart.
            wrong = ("panicked at", *(() if tracebacks else ("Traceback",)))
            if code or any(words in log for words in wrong):
                raise ServerFailure(f"it has not ended well, exit code {code}:\n{log}")
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends what is left of it without ceremony."""
        self._tree.kill()
        self._log.close()


def _environment() -> dict[str, str]:
    """The environment of this process without what would configure the server."""
    theirs = ("POORHTTP_", "PORT", "WEB_CONCURRENCY", "GUNICORN_", "PYTHONWARNINGS", "PYTHONDEV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    # A server that ends only because of this limit hangs.
    return {**kept, "PYTHONPATH": lab_folder(), "POORHTTP_GRACEFUL_TIMEOUT": "600"}
