"""The process tree of a main process with several services."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.request import urlopen

from tests.testkit.client import HANG
from tests.testkit.server import Program, command


class Tree(Program):
    """A server of several services."""

    def __init__(self, folder: Path, text: str, **env: str) -> None:
        self.file = folder / "services.ini"
        self.file.write_text(text)
        version = folder / "version"
        version.write_text("1")
        words = command("serve", "-c", str(self.file))
        super().__init__(*words, env={"VERSION_FILE": str(version), **env})
        last = re.findall(r"^\[service:(\w+)\]", text, re.MULTILINE)[-1]
        self.wait_line(re.compile(rf"\): {last}$", re.MULTILINE))
        found = re.findall(r" on (\S+) \(.*\): (\w+)$", self.log(), re.MULTILINE)
        self.urls = {name: url for url, name in found}
        self.ports = {name: int(url.rpartition(":")[2]) for url, name in found}

    def get(self, name: str) -> bytes:
        with urlopen(self.urls[name], timeout=HANG) as answer:
            body: bytes = answer.read()
        return body
