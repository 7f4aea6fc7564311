"""Replaces functions of the standard library at import, as `REPLACED` in the environment says."""

from __future__ import annotations

import os
import threading
import time
from typing import Any


def refuse(*_: object, **__: object) -> Any:
    """Stand for a function that only works with a hub of greenlets."""
    raise RuntimeError("replaced")


#: Half of gevent's patches leave threads what they are.
GREENLETS = os.environ["REPLACED"] in ("gevent", "half")

if GREENLETS:
    from gevent import monkey

    monkey.patch_all(thread=os.environ["REPLACED"] == "gevent")
else:
    import _thread
    import select
    import signal

    for module, names in {
        threading: ("Thread", "Lock", "Event", "_start_new_thread", "_start_joinable_thread"),
        _thread: ("start_new_thread",),
        select: ("select", "epoll"),
        os: ("fork", "waitpid"),
        signal: ("signal", "set_wakeup_fd", "pthread_sigmask"),
        time: ("sleep",),
    }.items():
        for name in names:
            if hasattr(module, name):
                setattr(module, name, refuse)
    # As eventlet does.
    del select.poll

#: A pipe for each of two requests that wait for each other.
PIPES = [os.pipe(), os.pipe()]


def application(environ: Any, start_response: Any) -> list[bytes]:
    """Tell the thread; `/meet/0` and `/meet/1` are answered when both have come."""
    path = environ["PATH_INFO"]
    if path.startswith("/meet/"):
        number = int(path[-1])
        os.write(PIPES[1 - number][1], b"x")
        os.read(PIPES[number][0], 1)
        if GREENLETS:
            # Both threads make a hub now.
            time.sleep(0.001)
    print("said", path, file=environ["wsgi.errors"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [threading.current_thread().name.encode() if GREENLETS else b""]
