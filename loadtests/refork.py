"""Reforks under load: workers with connections to PostgreSQL are replaced by forks of one of them.

``python -m loadtests.refork`` starts a PostgreSQL of its own, a server for each mode with several
workers, and clients that send a token with each request and expect it back from the database. It
fails if one answer is missing or somebody else's. ``python -m loadtests operate refork`` measures
the memory.

Debian: ``apt-get install postgresql``; Python: ``pip install sqlalchemy psycopg[binary]``.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadtests.reporting.progress import Progress

CLIENTS = 8
PATIENCE = 120.0
"""Seconds without progress after which a run has failed."""

HOOKS = {
    "close": ("--before-refork", "loadtests.apps.reforked:close_connections"),
    "forget": ("--after-fork", "loadtests.apps.reforked:forget_connections"),
}
"""What the application does with its connections: closes them before, or forgets them after."""


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Run a PostgreSQL with an empty table in a folder; its address, for SQLAlchemy."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    bins = programs[-1] if programs else Path(shutil.which("initdb") or "initdb").parent
    # It refuses to run as root.
    user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    folder.chmod(0o777)
    data = folder / "data"
    control: list[str | Path] = [*user, bins / "pg_ctl", "-D", data, "-w", "-s"]

    def run(*words: str | Path) -> None:
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd=folder)

    run(*user, bins / "initdb", "-D", data, "-U", "lab", "-A", "trust")
    options = (
        f"-c listen_addresses= -c unix_socket_directories={folder} -c max_connections=200 "
        "-c fsync=off -c synchronous_commit=off"
    )
    run(*control, "-o", options, "-l", folder / "log", "start")
    try:
        table = "CREATE TABLE tokens (id serial PRIMARY KEY, token text NOT NULL)"
        run(bins / "psql", "-q", "-h", folder, "-U", "lab", "-c", table, "postgres")
        yield f"postgresql+psycopg://lab@/postgres?host={folder}"
    finally:
        run(*control, "-m", "fast", "stop")


class Clients:
    """Clients that send tokens; half of them open a connection for each request.

    Attributes:
        answers: right answers, by process.
        faults: the others, in words.
    """

    def __init__(self, port: int) -> None:
        self.answers: dict[int, int] = {}
        self.faults: list[str] = []
        self._port = port
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number % 2 == 0,)) for number in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let each have its last answer."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, keeps: bool) -> None:
        connection: http.client.HTTPConnection | None = None
        while not self._over.is_set():
            if connection is None or _is_closed(connection):
                connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            token = f"token-{next(self._numbers)}"
            fields = {} if keeps else {"Connection": "close"}
            try:
                connection.request("GET", f"/?token={token}", headers=fields)
                response = connection.getresponse()
                body = response.read().decode()
                written, pid, _ = body.split() if response.status == 200 else ("", "0", "")
                if written != token:
                    raise ValueError(f"{response.status} {body}")
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.faults.append(f"{token}: {error!r}")
                connection = None
                continue
            with self._lock:
                self.answers[int(pid)] = self.answers.get(int(pid), 0) + 1
            if not keeps or response.will_close:
                connection.close()
                connection = None


def _is_closed(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has closed an idle connection."""
    return connection.sock is None or bool(select.select([connection.sock], [], [], 0)[0])


def refork(
    options: argparse.Namespace, mode: str, hook: str, database: str, log: Path, progress: Progress
) -> str:
    """Have a server reforked under load; what came of it. Raises RuntimeError."""
    reforks, workers = options.reforks, options.workers
    numbers = ",".join([str(options.requests)] * reforks)
    words = [sys.executable, "-m", "poorhttp", "serve", "loadtests.apps.reforked:application"]
    words += ["--bind", "127.0.0.1:0", "--mode", mode, "--workers", str(workers), "--preload"]
    words += ["--refork-after", numbers, "--drain-timeout", "0.2", *HOOKS[hook]]
    begun = time.monotonic()
    env = {**os.environ, "LOADTESTS_DATABASE": database}
    with log.open("wb") as file:
        server = subprocess.Popen(words, stderr=file, env=env)
    clients: Clients | None = None
    try:
        while not (ready := re.search(r"listening on http://127.0.0.1:(\d+)", log.read_text())):
            if server.poll() is not None:
                raise RuntimeError(log.read_text())
            time.sleep(0.1)
        clients = Clients(int(ready[1]))
        done, since = 0, time.monotonic()
        while done < reforks and not clients.faults:
            now = log.read_text().count(f" reforked {workers} workers")
            if now > done:
                for number in range(done, min(now, reforks)):
                    progress.step(f"{mode}, {hook}: refork {number + 1}")
                done, since = now, time.monotonic()
            if time.monotonic() - since > PATIENCE:
                raise RuntimeError(f"only {done} reforks: {log.read_text()[-2000:]}")
            time.sleep(0.1)
    finally:
        if clients is not None:
            clients.end()
        server.terminate()
        code = server.wait()
    bad = [line for line in log.read_text().splitlines() if " error: " in line or "warning" in line]
    if clients.faults or code or bad:
        raise RuntimeError("\n".join([*clients.faults[:10], *bad[:10], f"exit code {code}"]))
    answers, seconds = sum(clients.answers.values()), time.monotonic() - begun
    return (
        f"{mode}, {hook}: {done} reforks, {answers:,} answers of {len(clients.answers)} processes "
        f"in {seconds:.0f} s, 0 lost, 0 of another request"
    )


def main() -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m loadtests.refork", description=__doc__)
    parser.add_argument("--reforks", type=int, default=200, help="of each server")
    parser.add_argument("--workers", type=int, default=4, help="of each server")
    parser.add_argument("--requests", type=int, default=50, help="of a worker before a refork")
    parser.add_argument("--modes", nargs="+", default=["forking", "threading"])
    parser.add_argument("--hooks", nargs="+", default=list(HOOKS), choices=HOOKS)
    options = parser.parse_args()
    runs = list(itertools.product(options.modes, options.hooks))
    with (
        tempfile.TemporaryDirectory() as folder,
        postgresql(Path(folder)) as database,
        Progress(len(runs) * options.reforks) as progress,
    ):
        for mode, hook in runs:
            log = Path(folder) / f"{mode}-{hook}"
            try:
                print(refork(options, mode, hook, database, log, progress), flush=True)
            except RuntimeError as error:
                print(f"{mode}, {hook}: {error}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
