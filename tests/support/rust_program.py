"""Programs of the Rust workspace that answer calls over their standard input and output."""

from __future__ import annotations

import subprocess
import sys

from tests.__main__ import CRATES
from tests.testkit.server import ROOT

#: Of the crates whose tests are built: for other ones, dependencies would have other features, and
#: be compiled again.
BUILD = (
    *("cargo", "build", "--quiet", "--manifest-path", str(ROOT / "core" / "Cargo.toml")),
    *(word for crate in CRATES for word in ("-p", f"poorhttp-{crate}")),
    "--bin",
)

#: Seconds for the build, which has mostly nothing to do.
BUILD_TIMEOUT = 3600


def start(name: str) -> subprocess.Popen[bytes]:
    """Build and start a program."""
    bootstrap = (sys.executable, str(ROOT / "core" / "bootstrap.py"), "run")
    subprocess.run((*bootstrap, *BUILD, name), check=True, timeout=BUILD_TIMEOUT)
    program = str(ROOT / "core" / "target" / "debug" / name)
    return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
