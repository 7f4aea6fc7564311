"""Static files of a Django project in production, as `collectstatic` has collected them.

`STATIC_URL` and `STATIC_ROOT` are values that the settings compute. So a process of its own, with
the rights of the workers, imports them; the main process runs no code of the project, and trusts
nothing that comes from there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from poorhttp.config import loader
from poorhttp.config.settings import Settings
from poorhttp.plugins.discovery import child_answer
from poorhttp.plugins.discovery.found_target import ORIGIN
from poorhttp.process.privileges import Privileges
from poorhttp.process.signals import SIGNALS, signal
from poorhttp.targets.module import prepend_to_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STATIC_FILES = "django.contrib.staticfiles"

#: Seconds for importing the settings.
TIMEOUT = 60.0

#: Middleware that serves the same files.
WHITENOISE = "whitenoise.middleware.WhiteNoiseMiddleware"


class StaticFiles:
    """What the settings of a project say about its static files.

    Attributes:
        url: `STATIC_URL`; empty if Django or another server has the files.
        root: `STATIC_ROOT`, an absolute path.
        debug: whether `DEBUG` is on.
        problem: why none of this is known; empty if it is.
    """

    def __init__(
        self, url: str = "", root: str = "", debug: bool = False, problem: str = ""
    ) -> None:
        self.url = url
        self.root = root
        self.debug = debug
        self.problem = problem

    @property
    def collected(self) -> bool:
        """Whether the folder exists, now: a reload comes after the first `collectstatic` too."""
        return bool(self.root) and os.path.isdir(self.root)

    @property
    def prefix(self) -> str:
        """Prefix of the paths; empty if they are at another server."""
        return self.url.rstrip("/") if self.url.startswith("/") else ""

    def lines(self) -> Iterator[str]:
        """Yield the messages about them."""
        if self.problem:
            yield f"static files are not served by the server: {self.problem}"
        if self.prefix and self.collected:
            yield f"serves {self.root} at {self.url} (STATIC_ROOT, STATIC_URL)"
        elif self.prefix and self.root:
            yield f"STATIC_ROOT {self.root} does not exist: run manage.py collectstatic"
        if self.debug:
            yield (
                "DEBUG is on in the settings: Django shows every client its error pages, with "
                "source and settings; production has it off, and poorhttp dev is for development"
            )

    def apply(self, settings: Settings) -> None:
        """Serve the folder, unless an option has something at its prefix."""
        taken = [prefix for prefix, _ in (*settings.static, *settings.mount)]
        if not (self.prefix and self.collected) or self.prefix in taken:
            return
        given = [
            (settings.origin("static", number), text)
            for number, text in enumerate(settings.written("static"))
        ]
        settings.set("static", [*given, (ORIGIN, f"{self.prefix}={self.root}")])


def find(settings: Settings) -> StaticFiles:
    """Return what the settings of the project say; nothing if they cannot be imported.

    The worker that loads the application reports the error of the import. The settings are imported
    in a child process with a time limit: code in them that never ends does not block the server.

    Args:
        settings: with the folder, the user and the path of modules; `DJANGO_SETTINGS_MODULE` is in
            the environment.
    """

    def read() -> object:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        # What they print, workers print as well.
        null = os.open(os.devnull, os.O_WRONLY)
        for fd in (1, 2):
            os.dup2(null, fd)
        try:
            return _read(settings)
        except BaseException:
            return {}

    try:
        answer = child_answer.ask(read, TIMEOUT)
    except child_answer.NoAnswer as why:
        return StaticFiles(problem=f"the process that imports the settings {why}")
    return _checked(answer)


def _checked(answer: object) -> StaticFiles:
    """Return what an answer says, if it has the form of one of `_read`."""
    kinds = {"url": str, "root": str, "debug": bool}
    if isinstance(answer, dict) and all(
        isinstance(value, kinds.get(name, ())) for name, value in answer.items()
    ):
        files = StaticFiles(**answer)
        if all(" " <= character != "\x7f" for character in files.url + files.root):
            return files
        return StaticFiles(problem="STATIC_URL or STATIC_ROOT has control characters")
    return StaticFiles(problem="the process that imports the settings gave another answer")


def _read(settings: Settings) -> dict[str, Any]:
    loader.change_folder(settings)
    Privileges(settings).drop()
    loader.set_variables(settings)
    loader.extend_path(settings)
    prepend_to_path(os.getcwd())
    from django.conf import settings as project

    values: dict[str, Any] = {"debug": bool(project.DEBUG)}
    if STATIC_FILES in project.INSTALLED_APPS and WHITENOISE not in project.MIDDLEWARE:
        root = os.path.abspath(project.STATIC_ROOT) if project.STATIC_ROOT else ""
        values |= {"url": str(project.STATIC_URL or ""), "root": root}
    return values
