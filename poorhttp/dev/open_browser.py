"""`--open`: the browser is opened when the server is ready."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from poorhttp import logs
from poorhttp.process import fork
from poorhttp.process.signals import SIGNALS, signal

#: Who listens at every address, for a browser on this machine.
WILDCARD_URLS = ("http://0.0.0.0:", "http://[::]:")

#: What the process does: it knows $BROWSER, xdg-open and all others. They say a lot, to nobody.
SCRIPT = """
import os, sys, webbrowser
if not webbrowser.open(sys.argv[1]):
    os.write(int(sys.argv[2]), b"poorhttp: no browser can be opened here ($BROWSER names one)\\n")
"""


def open(urls: Iterable[str]) -> None:  # noqa: A001
    """Open the browser at the first address that it understands; say so if there is none.

    It is found by a process of its own, which nobody waits for.
    """
    urls = list(urls)
    url = browser_url(urls)
    if not url:
        logs.write("warning", f"open: a browser cannot go to {', '.join(urls)}")
        return
    try:
        fork.fork(lambda: _exec_browser(url))
    except OSError as error:
        logs.write("warning", f"open: no process can be started: {error}")


def browser_url(urls: Iterable[str]) -> str:
    """Return the first address that a browser understands; empty: it understands none of them."""
    for url in urls:
        for everywhere in WILDCARD_URLS:
            if url.startswith(everywhere):
                return "http://localhost:" + url[len(everywhere) :]
        if url.startswith("http://"):
            return url
    return ""


def _exec_browser(url: str) -> None:
    # A session of its own: Ctrl-C is meant for the server.
    os.setsid()
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    stderr_copy = os.dup(2)
    os.set_inheritable(stderr_copy, True)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    # Isolated: the project may have a module of any name.
    os.execv(sys.executable, [sys.executable, "-I", "-c", SCRIPT, url, str(stderr_copy)])
