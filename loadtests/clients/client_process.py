"""Starts a process of clients, and controls it by lines on its standard input and output."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from loadtests.errors import ServerFailure
from loadtests.measure.process_tree import ProcessTree, have_ended
from loadtests.measure.waiting import patience
from loadtests.programs import ROOT

if TYPE_CHECKING:
    from typing_extensions import Self

YIELDING = "chrt", "--idle", "0"
"""Begins the command of clients that leave their core at once to the client that is measured."""
PREFERRED = "chrt", "--fifo", "1"
"""Begins the command of a client that runs at once, whoever computes on its core. Not everybody may
start one: see `allowed`."""
ANSWER_SECONDS = patience(120.0)
END_SECONDS = patience(10.0)


@cache
def allowed(launcher: tuple[str, ...]) -> bool:
    """Whether a command may begin like that here (chrt(1) needs CAP_SYS_NICE for some)."""
    tried = subprocess.run([*launcher, "true"], capture_output=True, check=False)
    return tried.returncode == 0


class ClientProcess:
    """`python -m MODULE ARGUMENTS`, which says `ready` and lives until the block ends.

    `who` are its clients, in words, and `launcher` begins the command. Raises ServerFailure if the
    server does not let them in.
    """

    def __init__(
        self,
        who: str,
        module: str,
        arguments: Sequence[str],
        core: int | None,
        launcher: Sequence[str] = (),
    ) -> None:
        self.who = who
        self._tree = ProcessTree(
            [*launcher, sys.executable, "-m", module, *arguments],
            core,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        self._tree.__enter__()
        try:
            said = self._line()
            if said != "ready":
                raise ServerFailure(f"it does not let {self.who} in: {said}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        process = self._tree.popen
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        # Its sockets are closed by the kernel, one after the other.
        have_ended([process.pid], END_SECONDS)
        self._tree.kill()

    def ask(self, line: str) -> Any:
        """The answer of the process to a line: what its JSON means."""
        pipe = self._tree.popen.stdin
        assert pipe is not None
        pipe.write(f"{line}\n".encode("ascii"))
        pipe.flush()
        return json.loads(self._line())

    def _line(self) -> str:
        output = self._tree.popen.stdout
        assert output is not None
        if not select.select([output], [], [], ANSWER_SECONDS)[0]:
            raise ServerFailure(f"its {self.who} say nothing any more")
        line = output.readline().decode("utf-8").strip()
        if not line:
            raise ServerFailure(f"its {self.who} have died")
        return line


def answer_lines(answer: Callable[[str], object]) -> None:
    """In that process: says `ready`, and answers lines with JSON until the input ends."""
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(line.strip()), default=vars), flush=True)
