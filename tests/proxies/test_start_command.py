"""`python -m proxy`, which the Makefile runs: starts and stops all processes."""

from __future__ import annotations

import os
import re
import signal
import ssl
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from tests.packages import need
from tests.support.each_value import each_value
from tests.support.proxies import reserve
from tests.testkit.client import HANG
from tests.testkit.process import lives
from tests.testkit.server import Program, wait_for

NAMES = ["lighttpd", "nginx", "haproxy"]
#: nobody, who may read what we may, and write nowhere but in a temporary folder.
NOBODY = "65534"
AS_NOBODY = [
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"),
    "--bounding-set=-all,+dac_read_search",
]


class Started(Program):
    """The program, with ports of this machine; as an ordinary user."""

    def __init__(self, *words: str) -> None:
        need("setpriv", words[0])
        self.folder = tempfile.TemporaryDirectory()
        self.reserved = [reserve() for _ in range(3)]
        port, *servers = [str(reserved.getsockname()[1]) for reserved in self.reserved]
        if os.geteuid() == 0:
            os.chown(self.folder.name, int(NOBODY), int(NOBODY))
        super().__init__(
            *(AS_NOBODY if os.geteuid() == 0 else []),
            *(sys.executable, "-B", "-m", "proxy", *words),
            *("--port", port, "--servers", *servers),
            env={"TMPDIR": self.folder.name},
            merged=True,
        )
        # It says where to look.
        self.wait_line(re.compile("Ctrl-C"))

    def get(self, path: str) -> bytes:
        """A page, where it says that there is one."""
        found = re.search(r"https?://127\.0\.0\.1:\d+", self.log())
        assert found
        (certificate,) = [*Path(self.folder.name).glob("*/site.pem"), None][:1]
        context = ssl.create_default_context(cafile=certificate)
        with urlopen(found[0] + path, timeout=HANG, context=context) as answer:
            return bytes(answer.read())

    def below(self) -> list[int]:
        """All processes that it has started, and those that these have."""
        return [each.pid for each in psutil.Process(self.process.pid).children(recursive=True)]

    def named(self, name: str) -> int:
        """The first of its processes with a command line that has this in it."""
        children = psutil.Process(self.process.pid).children()
        return next(each.pid for each in children if name in " ".join(each.cmdline()))

    def __exit__(self, *_: object) -> None:
        """End what may be left, if a test failed."""
        for pid in self.below() if self.process.poll() is None else []:
            os.kill(pid, signal.SIGKILL)
        self.kill()
        for reserved in self.reserved:
            reserved.close()
        self.folder.cleanup()


@pytest.mark.parametrize(("name", "case"), each_value(NAMES, ["balanced", "site"]))
def test_it_serves_until_it_is_told_to_stop(name: str, case: str) -> None:
    with Started(name, case) as it:
        assert b"The light page" in it.get("/light")
        assert b"The heavy page" in it.get("/heavy")
        processes = it.below()
        assert len(processes) >= 3
        it.process.send_signal(signal.SIGINT)
        assert it.process.wait(HANG) == 0, it.log()
        assert not any(map(lives, processes))
        assert not os.listdir(it.folder.name)
        assert "Traceback" not in it.log()


@pytest.mark.parametrize(("name", "victim"), each_value(NAMES, ["itself", "a server", "the proxy"]))
def test_if_one_is_killed_all_end(name: str, victim: str) -> None:
    with Started(name) as it:
        processes = it.below()
        named = {"itself": "", "a server": "poorhttp", "the proxy": f"bin/{name}"}[victim]
        os.kill(it.named(named) if named else it.process.pid, signal.SIGKILL)
        code = it.process.wait(HANG)
        wait_for(lambda: not any(map(lives, processes)), f"the end of all: {it.log()}")
        if named:
            assert code == 1
            assert "has ended, and so does everything else" in it.log()
