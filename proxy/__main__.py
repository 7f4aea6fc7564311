"""Start a web server in front of ours, to try its configuration: `python -m proxy nginx`.

Everything is in a temporary folder and ends together: by Ctrl-C, by TERM, or when one of the
processes ends.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from proxy.programs import FOLDER, PROGRAMS, Program, ProxyError, is_servers

ROOT = FOLDER.parent

#: Seconds in which a process has to end before it is killed: a server waits 30 for its requests.
PATIENCE = 40.0


@dataclass(frozen=True)
class Process:
    """One of those that are started."""

    name: str
    popen: subprocess.Popen[bytes]

    def group(self, number: signal.Signals) -> None:
        """Send a signal to it and to all that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, number)

    def stop(self) -> None:
        """Have it end, and end what it leaves behind."""
        if self.popen.poll() is None:
            self.popen.terminate()
            # Whoever says it twice means it.
            with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                self.popen.wait(PATIENCE)
        self.group(signal.SIGKILL)
        self.popen.wait()


def start(
    name: str, command: list[str], folder: Path, environment: Mapping[str, str] = os.environ
) -> Process:
    """Start a process in `folder`, which ends with this one whatever happens to this one.

    It has a process group of its own: a Ctrl-C in the terminal is for us, who end one after
    the other.
    """
    words = ["setpriv", "--pdeathsig", "TERM", *command]
    return Process(
        name,
        subprocess.Popen(
            words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
        ),
    )


def server_commands(case: str, program: Program, folder: Path, ports: list[int]) -> list[list[str]]:
    """Return the commands of the servers behind a configuration."""
    serve = [sys.executable, "-m", "poorhttp", "serve", "-c", str(FOLDER / f"{case}.ini")]
    if case in ("balanced", "http2"):
        return [[*serve, "--bind", f"127.0.0.1:{port}"] for port in ports]
    if case == "site":
        mount = f"/downloads={folder}/downloads/app.py"
        return [[*serve, "--bind", f"unix:{folder}/poorhttp.sock", "--mount", mount]]
    binds = [f"{kind}+unix:{folder}/{kind}.sock" for kind in ("uwsgi", "scgi", "fastcgi")]
    command = [*serve, *(word for bind in binds for word in ("--bind", bind))]
    if program.name == "haproxy":
        proxied = f"unix:{folder}/proxied.sock"
        command += ["--bind", proxied, "--proxy-protocol", proxied]
    return [command]


def check_ports(ports: list[int]) -> None:
    """Complain if somebody else listens at one of them."""
    for port in ports:
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise ProxyError(
                f"127.0.0.1:{port}: {why}. Choose others with --port and --servers"
            ) from None


def listens(port: int) -> bool:
    """Tell whether somebody listens at a port."""
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def wait_until_ready(processes: list[Process], ready: Callable[[], bool]) -> None:
    """Wait until that is so; a ProxyError if one of them ends before."""
    while not ready():
        for process in processes:
            if process.popen.poll() is not None:
                raise ProxyError(f"{process.name} ended with exit code {process.popen.returncode}")
        time.sleep(0.02)


@contextmanager
def running(
    program: Program, case: str, folder: Path, ports: dict[int, int]
) -> Iterator[list[Process]]:
    """Start servers, and a proxy in front of them; all of them end with the block."""
    in_front = program.command(case, folder)
    program.prepare(case, folder, ports)
    downloads = ROOT / "apps" / "downloads"
    shutil.copytree(downloads / "files", folder / "static")
    shutil.copytree(downloads, folder / "downloads")
    theirs = [port for shipped, port in ports.items() if is_servers(shipped)]
    check_ports(list(ports.values()))
    processes: list[Process] = []
    try:
        commands = server_commands(case, program, folder, theirs)
        for number, command in enumerate(commands, 1):
            processes.append(start(f"server {number}", command, ROOT))
        sockets = [Path(word) for word in re.findall(r"unix:(\S+)", " ".join(commands[-1]))]
        wait_until_ready(
            processes, lambda: all(map(listens, theirs)) and all(path.exists() for path in sockets)
        )
        # The first to be stopped.
        processes.insert(0, start(program.name, in_front, folder, program.environment(folder)))
        wait_until_ready(processes, lambda: all(map(listens, ports.values())))
        yield processes
    finally:
        for process in processes:
            process.stop()


def wait_for_an_end(processes: list[Process]) -> None:
    """Wait until one of them ends, which is not what they are there for."""
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    names = [process.name for process in processes if ended and process.popen.pid == ended.si_pid]
    raise ProxyError(f"{' '.join(names)} has ended, and so does everything else")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m proxy", description=__doc__)
    parser.add_argument("name", choices=list(PROGRAMS), help="which web server")
    parser.add_argument(
        "case",
        nargs="?",
        default="balanced",
        help="which of its configurations: balanced (as without), site, gateway, http2",
    )
    parser.add_argument(
        "--port", type=int, metavar="N", help="where the web server listens, and behind it"
    )
    parser.add_argument(
        "--servers", type=int, nargs=2, metavar="N", help="where the two servers listen"
    )
    return parser


def chosen_ports(program: Program, options: argparse.Namespace) -> dict[int, int]:
    """Return for each port of the configuration the one that is wanted."""
    shipped = program.ports(options.case)
    theirs = [port for port in shipped if is_servers(port)]
    ours = [port for port in shipped if not is_servers(port)]
    first = options.port or ours[0]
    chosen = {port: first + port - ours[0] for port in ours}
    chosen.update(zip(theirs, options.servers or theirs, strict=False))
    return chosen


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Run until it is ended; returns the exit code."""
    options = _parser().parse_args()
    program = PROGRAMS[options.name]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        if options.case not in program.cases():
            raise ProxyError(f"{program.name} has {', '.join(program.cases())}")
        ports = chosen_ports(program, options)
        with (
            tempfile.TemporaryDirectory(prefix=f"proxy-{program.name}-") as folder,
            running(program, options.case, Path(folder), ports) as processes,
        ):
            scheme = "https" if options.case == "site" else "http"
            for shipped, port in ports.items():
                if not is_servers(shipped):
                    print(f"{program.name} answers: {scheme}://127.0.0.1:{port}/light and /heavy")
            print("Ctrl-C ends it, and the servers behind it.", flush=True)
            wait_for_an_end(processes)
    except ProxyError as error:
        print(f"proxy: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
