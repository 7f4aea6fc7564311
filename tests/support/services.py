"""The process tree of a main process with several services."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from urllib.request import urlopen

from tests.testkit.client import HANG
from tests.testkit.server import ROOT, command, environment, wait_for


class Tree:
    """A server of several services."""

    def __init__(self, folder: Path, text: str) -> None:
        self.file = folder / "services.ini"
        self.file.write_text(text)
        self.log_file = folder / "log"
        version = folder / "version"
        version.write_text("1")
        with self.log_file.open("w") as log:
            self.process = subprocess.Popen(
                command("serve", "-c", str(self.file)),
                stderr=log,
                cwd=ROOT,
                env=environment({"VERSION_FILE": str(version)}),
                start_new_session=True,
            )
        last = re.findall(r"^\[service:(\w+)\]", text, re.MULTILINE)[-1]
        self.wait_log(rf"\): {last}$")
        found = re.findall(r" on (\S+) \(.*\): (\w+)$", self.log(), re.MULTILINE)
        self.urls = {name: url for url, name in found}
        self.ports = {name: int(url.rpartition(":")[2]) for url, name in found}

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(HANG)

    def log(self) -> str:
        return self.log_file.read_text()

    def wait_log(self, pattern: str) -> None:
        def there() -> bool:
            ended = self.process.poll() is not None
            return bool(re.search(pattern, self.log(), re.MULTILINE)) or ended

        wait_for(there, f"{pattern} in the log")
        assert re.search(pattern, self.log(), re.MULTILINE), self.log()

    def get(self, name: str) -> bytes:
        with urlopen(self.urls[name], timeout=HANG) as answer:
            body: bytes = answer.read()
        return body
