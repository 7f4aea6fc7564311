"""Programs of `poorhttp` as forks of one process that has imported the package.

Half of what a server takes to start is the start of the interpreter with its imports, which is done
once for all servers and commands of a test process. What a program is given is the same, but for
`/proc`: there stand the command line and the environment of the process that forks. Whoever tests
these, or what the interpreter does at its start, executes the program.
"""

from __future__ import annotations

import atexit
import marshal
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).resolve().parents[2]

#: The interpreter of the forking process, as of each program.
INTERPRETER = (sys.executable, "-W", "error::SyntaxWarning")

#: What a child inherits, and tests change.
LIMITS = (*(getattr(resource, f"RLIMIT_{name}") for name in ("NOFILE", "FSIZE", "AS", "CORE")),)


def _inherited() -> object:
    """What a program would have of this process, and not of the one that forks."""
    ignored = [each for each in signal.valid_signals() if signal.getsignal(each) is signal.SIG_IGN]
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    os.umask(umask := os.umask(0o022))
    return [resource.getrlimit(each) for each in LIMITS], ignored, blocked, umask


#: The same at the start.
INHERITED = _inherited()

#: Prefixes of variables that the interpreter or the C library reads before the first line of ours.
READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "MALLOC_")

#: Takes requests from standard input, a socket: words, folder and environment; with standard input,
#: output, error and a pipe. Writes the process ID of the child and its exit code to that pipe. Only
#: modules are imported that each server imports, and those named behind the code.
FORKING = """
import _socket, atexit, gc, marshal, os, select, sys
del sys.path[0]
from poorhttp.cli import main
import poorhttp.supervisor.launcher
for module in sys.argv[1:]:
    try:
        __import__(module)
    except ImportError:
        pass
gc.collect()
gc.freeze()
requests, ends, poller = _socket.socket(fileno=os.dup(0)), {}, select.poll()
poller.register(requests, select.POLLIN)
pid = None
while pid != 0:
    for fd, event in poller.poll():
        if fd != requests.fileno():
            child, pipe = ends.pop(fd)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            poller.unregister(fd)
            try:
                os.write(pipe, b"%d\\n" % code)
            except BrokenPipeError:
                pass
            os.close(fd)
            os.close(pipe)
            continue
        request, sent, _, _ = requests.recvmsg(1 << 20, _socket.CMSG_SPACE(16))
        if not request:
            os._exit(0)
        fds = [int.from_bytes(sent[0][2][i : i + 4], sys.byteorder) for i in range(0, 16, 4)]
        pid = os.fork()
        if pid == 0:
            break
        fd = os.pidfd_open(pid)
        ends[fd] = pid, fds.pop()
        os.write(ends[fd][1], b"%d\\n" % pid)
        poller.register(fd, select.POLLIN)
        for fd in fds:
            os.close(fd)
os.setsid()
for number, fd in enumerate(fds[:3]):
    os.dup2(fd, number)
requests.detach()
os.closerange(3, 1024)
words, folder, variables, frees = marshal.loads(request)
os.environ.clear()
os.environ.update(variables)
os.chdir(folder)
sys.orig_argv[1:] = [*sys.orig_argv[1:3], "-m", "poorhttp", *words[1:]]
sys.argv[:] = words
del requests, ends, poller, fds, fd, event, sent, request, variables
code = main()
if not frees:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    except OSError:
        pass
sys.exit(code)
"""


def can_fork(env: Mapping[str, str] | None) -> bool:
    """Whether a program with these variables can be a fork."""
    read = any(name.startswith(READ_AT_START) for name in env or {})
    return not read and _inherited() == INHERITED


#: What workers of the mode import, which takes longer than all else that they do at their start.
GEVENT = ("gevent.monkey", "gevent.socket", "gevent.ssl", "gevent.subprocess", "gevent.pool")

#: Seconds for the end of the process that forks, which has nothing to do then.
LIMIT = 60

#: Held while a program is started.
_starting = Lock()

#: Each process that forks, and the way to it, by its variables that the interpreter reads and by
#: what it has imported.
_forkers: dict[object, tuple[subprocess.Popen[bytes], socket.socket]] = {}


def _forking(env: Mapping[str, str], imported: tuple[str, ...]) -> socket.socket:
    """The way to the process that forks programs with these variables, which ends with this one."""
    read = frozenset(each for each in env.items() if each[0].startswith(READ_AT_START))
    key = read, imported
    # It is killed with a test that hangs.
    if key in _forkers and _forkers[key][0].poll() is None:
        return _forkers[key][1]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [*INTERPRETER, "-c", FORKING, *imported],
        stdin=theirs.fileno(),
        cwd=ROOT,
        env=env,
        start_new_session=True,
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait(LIMIT)

    atexit.register(end)
    _forkers[key] = process, ours
    return ours


class ForkedProcess:
    """`poorhttp` with these words, as a fork; with those methods of `Popen` that tests use.

    Attributes:
        args: the words.
        pid: its process ID.
        returncode: its exit code, or `None` while nothing has looked for its end.
    """

    def __init__(
        self,
        words: Sequence[str | Path],
        *,
        stdout: int,
        stderr: int,
        cwd: Path,
        env: Mapping[str, str],
        imported: tuple[str, ...] = (),
        frees: bool = True,
    ) -> None:
        """Start it; it finds the modules `imported`.

        `frees`: its interpreter frees all modules at its end, which takes as long as a short
        command.
        """
        self.args = [str(ROOT / "poorhttp" / "__main__.py"), *map(str, words)]
        self.returncode: int | None = None
        self._answers, write = os.pipe2(os.O_CLOEXEC)
        if not imported and "gevent" in words:
            imported = GEVENT
        null = os.open(os.devnull, os.O_RDONLY)
        variables = {name: str(value) for name, value in env.items()}
        request = marshal.dumps((self.args, str(cwd), variables, frees))
        try:
            with _starting:
                socket.send_fds(_forking(env, imported), [request], [null, stdout, stderr, write])
        finally:
            os.close(null)
            os.close(write)
        self._unread = b""
        self.pid = self._number(None)

    def poll(self) -> int | None:
        """Its exit code, or `None` if it has not ended."""
        if self.returncode is None and select.select([self._answers], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; the exit code."""
        if self.returncode is None:
            self.returncode = self._number(timeout)
            os.close(self._answers)
        return self.returncode

    def _number(self, timeout: float | None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self._unread:
            left = None if end is None else max(0.0, end - time.monotonic())
            if not select.select([self._answers], [], [], left)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            answer = os.read(self._answers, 64)
            assert answer, "the process that forks has ended"
            self._unread += answer
        line, _, self._unread = self._unread.partition(b"\n")
        return int(line)

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            # It may end meanwhile.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
