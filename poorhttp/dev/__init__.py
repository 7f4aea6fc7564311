"""The development server: `poorhttp dev`, and what else its options turn on.

The command line and the library call `install` if an option asks for any of it. No other package
imports anything of this one; `worker/development.py` is where the others find it.

server.py                 what is added to a server, and where
discovery/                what to serve if nobody says it; the commands of Django and Flask
reload/                   a new generation of the application when a file is saved
debug/                    exceptions as pages, with Werkzeug's debugger
live_reload.py            pages that reload themselves in the browser
profiler.py               profiles of slow requests, as pages
console.py                what the main process shows to the person who develops
terminal.py               requests as lines in the terminal
terminal_tracebacks.py    exceptions in the terminal
open_browser.py           `--open`
aliases/                  modules under the names that they had before
"""

from __future__ import annotations


def install() -> None:
    """Have services of this process and of its forks served for development."""
    from poorhttp.dev.server import DevServer
    from poorhttp.worker import development

    development.installed = DevServer()
