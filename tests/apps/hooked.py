"""An application whose hooks write what they get to the file `HOOKS_LOG`, one JSON line each."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp.worker.hooks.arguments import Argument, WorkerInfo


def note(hook: str, argument: Argument) -> None:
    """Write what a hook has got, and where it runs."""
    where = {"hook": hook, "in": os.getpid(), "parent": os.getppid(), "uid": os.getuid()}
    place = {"folder": os.getcwd(), "first": sys.path[0], "gevent": "gevent" in sys.modules}
    place["key"] = os.environ.get("SHOP_KEY")
    with open(os.environ["HOOKS_LOG"], "a", encoding="utf-8") as file:
        file.write(json.dumps({**where, **place, **vars(argument)}) + "\n")


def server_ready(server: Argument) -> None:
    note("server_ready", server)


def worker_start(worker: Argument) -> None:
    note("worker_start", worker)


def worker_exit(worker: Argument) -> None:
    note("worker_exit", worker)


def worker_timeout(worker: Argument) -> None:
    note("worker_timeout", worker)


def reload(result: Argument) -> None:
    note("reload", result)


def fail(argument: Argument) -> None:
    raise RuntimeError("not this time")


def leave(argument: Argument) -> None:
    sys.exit("gone")


def end(argument: Argument) -> None:
    os._exit(3)


def be_killed(argument: Argument) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fork(argument: Argument) -> None:
    """Return in another process too."""
    os.fork()


def hang(argument: Argument) -> None:
    note("hang", argument)
    while True:
        time.sleep(60)


def wait(argument: Argument) -> None:
    """Note it, and wait until the file `HOOKS_GATE` exists."""
    note("wait", argument)
    while not os.path.exists(os.environ["HOOKS_GATE"]):
        time.sleep(0.002)


def hang_for_two(worker: WorkerInfo) -> None:
    """Never return for the second worker."""
    if worker.number == 2:
        hang(worker)


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with the process, and whether it has imported hooks; `/stay` cannot be interrupted."""
    while environ["PATH_INFO"] == "/stay":
        with suppress(BaseException):
            time.sleep(60)
    start_response("200 OK", [])
    rooms = ("poorhttp.worker.hooks", "poorhttp.supervisor.hooks")
    has = any(name.startswith(rooms) for name in sys.modules)
    return [json.dumps({"pid": os.getpid(), "hooks": has}).encode()]
