"""An application that describes its process, and holds requests until a file exists."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from wsgiref.validate import validator

from tests.apps.basics import Environ, Pieces, StartResponse, enter

IMPORTED_IN = os.getpid()


#: Whether gevent had replaced the blocking parts of Python before this module was imported.
MONKEY = sys.modules.get("gevent.monkey")
PATCHED_BEFORE_IMPORT = MONKEY is not None and bool(MONKEY.is_module_patched("socket"))


def wait(environ: Environ) -> object:
    """Note `entered FILE` in the log, then wait until the file (the query) exists."""
    enter(environ, environ["QUERY_STRING"])
    return "waited"


def read(environ: Environ) -> object:
    """Read a FIFO (the query) in a system call, which no other thread can interrupt."""
    with open(environ["QUERY_STRING"], encoding="utf-8") as file:
        return file.read()


def process(environ: Environ) -> object:
    """What is to be known of this process."""
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "imported_in": IMPORTED_IN,
        "patched_before_import": PATCHED_BEFORE_IMPORT,
        "gevent": "gevent" in sys.modules,
        "main_thread": threading.current_thread() is threading.main_thread(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
    }


#: Requests for `fork` that are about to fork.
FORKING: list[Environ] = []


def until_a_child_has_ended() -> None:
    """Wait for the child of `fork`, and leave its status to whoever asks for it."""
    if FORKING:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)


# A parent may be so slow that its child is over before it goes on: here it is always.
os.register_at_fork(after_in_parent=until_a_child_has_ended)


def fork(environ: Environ) -> object:
    """Fork as careless libraries do: the child ends at once, without any clean-up."""
    FORKING.append(environ)
    child = os.fork()
    if child == 0:
        os._exit(7)
    FORKING.remove(environ)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def spawn(environ: Environ) -> object:
    """Start a program that lives on, and that inherits whatever can be inherited."""
    return subprocess.Popen(["sleep", "1000"], close_fds=False).pid


def run(environ: Environ) -> object:
    """Run a program and take its output."""
    return subprocess.run(["echo", "done"], capture_output=True, text=True, check=True).stdout


PATHS = {f"/{function.__name__}": function for function in (wait, read, process, fork, spawn, run)}


def gate(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer with what the function of the path returns, as JSON."""
    body = json.dumps(PATHS[environ["PATH_INFO"]](environ)).encode()
    fields = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response("200 OK", fields)
    return [body]


application = validator(gate)
