"""An application that gets stuck in different ways, each until something is done from outside.

The query is a path: of a file that is waited for, of a lock (`tests.support.process_lock`), or of a
database.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time

from tests.apps.basics import Environ, Pieces, StartResponse, say
from tests.support.process_lock import ProcessLock

#: What `/grow` has made.
KEPT: list[object] = []


class Kept:
    """An object that is never released."""

    def __init__(self) -> None:
        self.itself = self


# Each function below is a path.


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


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Do what the path says, and answer with the process ID."""
    path = environ["QUERY_STRING"]
    environ["wsgi.errors"].write(f"entered {path}\n")
    globals()[environ["PATH_INFO"][1:]](path)
    return say(start_response, str(os.getpid()))
