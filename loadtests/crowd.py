"""A process of clients that are a nuisance, as the lab sees it."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from dataclasses import dataclass
from types import TracebackType

from loadtests.application import ROOT
from loadtests.errors import ServerFailure
from loadtests.pin import pinned

ANSWER_SECONDS = 120.0


@dataclass(frozen=True)
class State:
    """What has become of the clients.

    `open` are connected now, and for `unread` of them something has arrived. `closed` counts
    connections that the server has ended, and `never` those first ones that it has not. `first`,
    `median` and `last` are the seconds that connections lasted, None if none has ended. `told`
    counts what they were told in the end, by status code.
    """

    count: int
    open: int
    unread: int
    closed: int
    never: int
    first: float | None
    median: float | None
    last: float | None
    told: dict[str, int]


class Crowd:
    """`count` clients of a kind of `loadtests.nuisance`, connected until the block ends.

    Raises ServerFailure if the server does not let them all in.
    """

    def __init__(
        self, kind: str, port: int, count: int, *, renew: bool = False, core: int | None = None
    ) -> None:
        self.kind = kind
        self.count = count
        command = [sys.executable, "-m", "loadtests.nuisance", kind, str(port), str(count)]
        self._command = [*pinned(core), *command, *(["--renew"] if renew else [])]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Crowd:
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        try:
            said = self._line()
            if said != "ready":
                raise ServerFailure(f"it does not let {self.count:,} clients in: {said}")
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def state(self) -> State:
        """What has become of them."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        return State(**json.loads(self._line()))

    def _line(self) -> str:
        assert self._process is not None
        output = self._process.stdout
        assert output is not None
        if not select.select([output], [], [], ANSWER_SECONDS)[0]:
            raise ServerFailure(f"its {self.count:,} clients say nothing any more")
        line = output.readline().decode("utf-8").strip()
        if not line:
            raise ServerFailure(f"its {self.count:,} clients have died")
        return line

    def _stop(self) -> None:
        process = self._process
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            # Its sockets are closed by the kernel, one after the other.
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
