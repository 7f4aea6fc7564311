"""Opens the browser when the server is ready (`--open`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from poorhttp import logs
from poorhttp.process import fork, signals

#: URLs of wildcard addresses, for which a browser on this machine uses `localhost`.
WILDCARD_URLS = tuple(
    f"{scheme}://{host}:" for scheme in ("http", "https") for host in ("0.0.0.0", "[::]")
)

#: Program of the child process. `webbrowser` knows $BROWSER, xdg-open and others; their output goes
#: to `/dev/null`.
SCRIPT = """
import os, sys, webbrowser
if not webbrowser.open(sys.argv[1]):
    os.write(int(sys.argv[2]), b"poorhttp: no browser can be opened here ($BROWSER names one)\\n")
"""


def open(urls: Iterable[str]) -> None:  # noqa: A001
    """Open the browser at the first address that it understands; log a warning if there is none.

    A child process does it, and the server does not wait for it.
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
    """Return the first address that a browser understands; or empty."""
    for url in urls:
        for everywhere in WILDCARD_URLS:
            if url.startswith(everywhere):
                return f"{url.partition(':')[0]}://localhost:{url[len(everywhere) :]}"
        if url.startswith(("http://", "https://")):
            return url
    return ""


def _exec_browser(url: str) -> None:
    # A session of its own: Ctrl-C must not reach the browser.
    os.setsid()
    signals.restore_for_exec()
    stderr_copy = os.dup(2)
    os.set_inheritable(stderr_copy, True)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    # Isolated (-I): a module of the project must not take the place of one of Python's.
    os.execv(sys.executable, [sys.executable, "-I", "-c", SCRIPT, url, str(stderr_copy)])
