"""The machine of a page: namespaces, an overlay over the root, and one bash session."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.testkit.client import HANG
from tests.testkit.process import children
from tests.testkit.server import ROOT

HERE = Path(__file__).parent
STAND_INS = HERE / "stand_ins"
#: Makes the namespaces; what the machine's root may not do to the kernel of this one.
UNSHARE = (
    *("unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"),
    *("--propagation", "private", "setpriv"),
    "--bounding-set=-sys_boot,-sys_module,-sys_rawio,-sys_time,-syslog,-mac_admin",
)


def lacking() -> str:
    """Why there can be no machine here; empty if there can."""
    if os.geteuid():
        return "only root can make the machine of a page"
    for name in ("unshare", "setpriv", "ip", "bash"):
        if shutil.which(name) is None:
            return f"{name} is not installed"
    tried = subprocess.run([*UNSHARE, "true"], capture_output=True, check=False, timeout=HANG)
    return "" if tried.returncode == 0 else "namespaces are not allowed here"


class Machine:
    """A machine with one session of bash; a context manager."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="manual-"))
        self.folder = "/home/you"
        self._count = 0
        prefixes = dict.fromkeys((str(ROOT), sys.prefix, sys.base_prefix))
        paths = [path for path in prefixes if not path.startswith(("/usr", "/bin"))]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [
                *(*UNSHARE, "sh", str(HERE / "begin.sh"), str(self._folder)),
                *(os.path.realpath(sys.executable), str(HERE / "init.py"), *paths),
            ],
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        status, _ = self.run("")
        assert status == 0

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(HANG)
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                stream.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def root(self) -> Path:
        """Its root, as this machine sees it."""
        inner = children(self._process.pid)
        return Path(f"/proc/{inner[0]}/root")

    def _send(self, command: str) -> tuple[int, Path]:
        """Have the session take a command; its answer, and the file of the output."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(command.encode() + b"\0")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        self._count += 1
        line = self._answer()
        if not line.endswith("\n"):
            self._log.seek(0)
            raise TimeoutError(self._log.read().decode(errors="replace") + self._shown())
        number, self.folder = line.rstrip("\n").split(" ", 1)
        return int(number), self.root / f"run/manual/{self._count}"

    def _answer(self) -> str:
        assert self._process.stdout is not None
        end = time.monotonic() + HANG
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n") and selector.select(end - time.monotonic()):
                piece = os.read(self._process.stdout.fileno(), 65536)
                if not piece:
                    break
                line += piece
        return line.decode()

    def _shown(self) -> str:
        """What the command that does not end has printed."""
        try:
            return (self.root / f"run/manual/{self._count}").read_text(errors="replace")
        except (OSError, IndexError):
            return ""

    def run(self, command: str) -> tuple[int, str]:
        """Run a command to its end; its exit status and output."""
        status, path = self._send(command)
        return status, path.read_text(encoding="utf-8", errors="replace")

    def start(self, command: str) -> Job:
        group, path = self._send("&" + command)
        return Job(self, group, path, command)

    def write(self, name: str, text: str) -> None:
        """Write a file; it belongs to the owner of its folder."""
        path = self.root / os.path.join(self.folder, name).lstrip("/")
        missing = []
        for folder in path.parents:
            if folder.exists():
                break
            missing.append(folder)
        found = (missing[-1] if missing else path).parent.stat()
        for folder in reversed(missing):
            folder.mkdir()
            os.chown(folder, found.st_uid, found.st_gid)
        path.write_text(text, encoding="utf-8")
        os.chown(path, found.st_uid, found.st_gid)


class Job:
    """A command that runs on."""

    def __init__(self, machine: Machine, group: int, path: Path, command: str) -> None:
        self._machine = machine
        self._group = group
        self._path = path
        self.command = command
        #: How much of the output was waited for.
        self.seen = 0

    def output(self) -> str:
        return self._path.read_text(encoding="utf-8", errors="replace")

    def runs(self) -> bool:
        """Whether it is still there."""
        return self._signal(0) == 0

    def interrupt(self) -> None:
        """Ctrl-C, and wait for its end."""
        self._signal(signal.SIGINT.value)
        self._machine.run(f"wait {self._group}")

    def _signal(self, number: int) -> int:
        """Send it a signal; 0 if it is there. Some of its processes may be root's."""
        return self._machine.run(f"sudo kill -{number} -- -{self._group}")[0]


def _environment() -> dict[str, str]:
    programs = os.path.dirname(sys.executable)
    path = [str(STAND_INS / "bin"), programs, "/usr/local/sbin", "/usr/local/bin"]
    path += ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    return {
        "PATH": os.pathsep.join(path),
        "HOME": "/home/you",
        "USER": "you",
        "LOGNAME": "you",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "MANUAL_PYTHON": os.path.realpath(sys.executable),
        "MANUAL_PROGRAMS": programs,
        "MANUAL_ROOT": str(ROOT),
    }
