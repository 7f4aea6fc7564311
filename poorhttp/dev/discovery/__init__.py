"""What `poorhttp dev` serves if nobody says it, and the commands of frameworks that start it.

discover.py        completes the settings with what is found
search.py          searches a folder, in a process of its own
candidates.py      which callable of a file is the application
django/            Django: static files, `manage.py dev`
flask_command.py   `flask dev`
dev_command.py     becomes `poorhttp dev`
"""

from __future__ import annotations

from collections.abc import MutableMapping

#: What frameworks are told by the environment where errors are shown as pages.
#:
#: Flask hands exceptions on only when it is debugging, and `app.run()` in a module that is imported
#: would be a second server: Flask's own command has it do nothing by the same means.
DEBUG_ENVIRONMENT = {"FLASK_DEBUG": "1", "FLASK_RUN_FROM_CLI": "true"}


def set_debug_defaults(environ: MutableMapping[str, str]) -> None:
    """Let frameworks know that somebody works on the application; what is set stays."""
    for name, value in DEBUG_ENVIRONMENT.items():
        environ.setdefault(name, value)
