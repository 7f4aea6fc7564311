"""An application that gets stuck in different ways, each until something is done from outside.

The query is a path: of a file that is waited for, of a lock (`tests.support.process_lock`), or of a
database.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable

from tests.support.process_lock import ProcessLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

#: What `/grow` has made.
KEPT: list[object] = []


class Kept:
    """An object that is never released."""

    def __init__(self) -> None:
        self.itself = self


def in_python(path: str) -> None:
    """Compute until the file exists."""
    while not os.path.exists(path):
        pass


def in_sleep(path: str) -> None:
    """Look for the file now and then."""
    while not os.path.exists(path):
        time.sleep(0.05)


def in_lock(path: str) -> None:
    """Wait for a lock of Python, which another thread releases when the file exists."""
    lock = threading.Lock()
    lock.acquire()

    def release() -> None:
        in_sleep(path)
        lock.release()

    threading.Thread(target=release).start()
    lock.acquire()


def in_c(path: str) -> None:
    """Wait in C, where other threads can run Python."""
    wait_in_c(path, holds=False)


def in_c_holding(path: str) -> None:
    """Wait in C, where no other thread can run Python."""
    wait_in_c(path, holds=True)


def wait_in_c(path: str, *, holds: bool) -> None:
    """Wait for a lock in C."""
    lock = ProcessLock(path)
    lock.acquire(holds_interpreter=holds)
    lock.release()


def in_database(path: str) -> None:
    """Wait for a database that somebody else has locked."""
    database = sqlite3.connect(path, timeout=600, isolation_level=None)
    database.execute("UPDATE stock SET number = number + 1")
    database.close()


def grow(path: str) -> None:
    """Make objects that are never released."""
    KEPT.extend(Kept() for _ in range(10_000))


PATHS = {
    f"/{function.__name__}": function
    for function in (
        in_python,
        in_sleep,
        in_lock,
        in_c,
        in_c_holding,
        in_database,
        grow,
    )
}


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Do what the path says, and answer with the process ID."""
    path = environ["QUERY_STRING"]
    environ["wsgi.errors"].write(f"entered {path}\n")
    PATHS[environ["PATH_INFO"]](path)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
