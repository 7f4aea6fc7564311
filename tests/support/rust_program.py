"""Programs of the Rust workspace that answer calls over their standard input and output."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.__main__ import CRATES
from tests.testkit.client import HANG
from tests.testkit.server import ROOT

if TYPE_CHECKING:
    from typing_extensions import Self

#: Of the crates whose tests are built: for other ones, dependencies would have other features, and
#: be compiled again.
BUILD = (
    *("cargo", "build", "--quiet", "--manifest-path", str(ROOT / "core" / "Cargo.toml")),
    *(word for crate in CRATES for word in ("-p", f"poorhttp-{crate}")),
    "--bin",
)

#: Seconds for the build, which has mostly nothing to do.
BUILD_TIMEOUT = 3600


class RustProgram:
    """One of them, built when a block begins, and running in the block.

    Attributes:
        answers: its standard output.
    """

    name = ""

    def __enter__(self) -> Self:
        bootstrap = (sys.executable, str(ROOT / "core" / "bootstrap.py"), "run")
        subprocess.run((*bootstrap, *BUILD, self.name), check=True, timeout=BUILD_TIMEOUT)
        program = str(ROOT / "core" / "target" / "debug" / self.name)
        self._process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.answers = self._process.stdout
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=HANG)

    def send(self, argument: bytes, letter: bytes = b"") -> None:
        """Send a call: its letter, if the program has several, the length, and the argument."""
        assert self._process.stdin is not None
        self._process.stdin.write(letter + len(argument).to_bytes(4, "big") + argument)
        self._process.stdin.flush()
