"""Finds the application to serve if no target is given; commands of Django and Flask.

options.py           the options
discover.py          completes the settings with the target that is found
worker_hooks.py      what it does where settings are read and applications are loaded
asgi_mode.py         chooses the mode `asyncio` for ASGI applications
found_target.py      the target, and the settings that go with it
search.py            searches a folder for an application, in a process of its own
candidates.py        finds the callable of a file that is the application
bottle_default.py    loads an application of Bottle, without Bottle's own server
django/              Django: static files, and the command `manage.py dev`
flask_command.py     the command `flask dev`
flask_files.py       variables of `.env` and `.flaskenv`
child_answer.py      the answer of a function that runs in a forked child
source/              reads Python source without running it
dev_command.py       replaces the process of a framework's command by `poorhttp dev`
"""

from __future__ import annotations

from collections.abc import MutableMapping


def set_debug_defaults(environ: MutableMapping[str, str]) -> None:
    """Set environment variables of frameworks, unless they are set."""
    # Flask passes exceptions on only in debug mode.
    environ.setdefault("FLASK_DEBUG", "1")
    # `app.run()` in an imported module does nothing.
    environ.setdefault("FLASK_RUN_FROM_CLI", "true")
