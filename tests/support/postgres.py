"""A PostgreSQL server on a Unix socket, of a user without privileges."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.packages import FOLDERS, need
from tests.support.nobody import IS_ROOT
from tests.testkit.client import HANG

#: Where Debian has the programs of each version, besides the path.
INSTALLED = Path("/usr/lib/postgresql")

#: The name by which clients come in.
USER = "tests"


def _program(name: str) -> str:
    folders = [str(each / "bin") for each in sorted(INSTALLED.glob("*"))[::-1]]
    found = shutil.which(name, path=os.pathsep.join([*folders, FOLDERS]))
    assert found, f"{name} is not installed"
    return found


@contextmanager
def postgres() -> Iterator[Path]:
    """A server, as long as the block runs: the folder of its socket. Skips where there is none."""
    need(str(INSTALLED))
    who: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    who = who if IS_ROOT else {}
    # pytest's folders may not be read by others; the name of a socket has to be short.
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        folder = Path(name)
        if IS_ROOT:
            shutil.chown(folder, "nobody", "nogroup")
        folder.chmod(0o755)
        data = str(folder / "data")
        made = [_program("initdb"), "--no-sync", "--auth=trust", f"--username={USER}", data]
        done = subprocess.run(
            made, cwd=folder, capture_output=True, text=True, timeout=HANG, check=False, **who
        )
        assert done.returncode == 0, done.stderr
        words = ["-D", data, "-k", name, "-F", "-c", "listen_addresses="]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [_program("postgres"), *words], cwd=folder, stdout=log, stderr=log, **who
            )
            try:
                _wait(folder, server)
                yield folder
            finally:
                # A fast shutdown, which does not wait for clients.
                server.send_signal(2)
                server.wait(HANG)


def _wait(folder: Path, server: subprocess.Popen[bytes]) -> None:
    asked = [_program("pg_isready"), "--quiet", "--host", str(folder), "--timeout", str(int(HANG))]
    while subprocess.run(asked, cwd=folder, timeout=HANG, check=False).returncode:
        assert server.poll() is None, (folder / "log").read_text()
