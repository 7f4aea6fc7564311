"""`manage.py dev`: the development server from Django's own command."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, SystemCheckError
from django.db import connections

from poorhttp.errors import Failure
from poorhttp.plugins.discovery.dev_command import DevCommand
from poorhttp.plugins.discovery.source.django import MANAGE, SETTINGS_APPLICATION


class Command(BaseCommand):  # type: ignore[misc]  # Django has no types
    """Run Django's checks, then become `poorhttp dev` with the project's settings."""

    help = (
        "Serves the project while you work on it, by poorhttp dev: [[HOST:]PORT] and any option of "
        "it (manage.py dev --help)."
    )
    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Parse the arguments as `poorhttp dev` does, so that its options are defined only once."""
        words, skips = _own_words(argv[2:])
        try:
            command_line = DevCommand(words, f"{os.path.basename(argv[0])} {argv[1]}")
            if command_line.wants_help:
                self.stdout.write(
                    f"Usage: {os.path.basename(argv[0])} {argv[1]} [[HOST:]PORT] [OPTION ...]\n\n"
                    f"Serve the project, by poorhttp dev. All its options may stand here, and of "
                    "Django's\n--settings, --pythonpath, --skip-checks and --no-color.\n\n"
                    f"{command_line.line.information}"
                )
                return
        except Failure as failure:
            self.stderr.write(f"poorhttp: {failure}")
            sys.exit(failure.exit_code)
        if not skips:
            self._check()
        # Connections must not stay open in the server.
        connections.close_all()
        command_line.execute("" if command_line.serves else _target(), _paths(argv[0]))

    def handle(self, *args: Any, **options: Any) -> None:
        """Refuse to be called by a program, whose process would be replaced."""
        raise CommandError("dev would replace this process; run poorhttp dev in a new one")

    def _check(self) -> None:
        """Print the result of Django's checks, as runserver does; the server starts in any case."""
        try:
            self.check(display_num_errors=True)
            self.check_migrations()
        except SystemCheckError as error:
            self.stderr.write(str(error))
        except Exception as error:
            self.stderr.write(f"The checks ended early: {type(error).__name__}: {error}")


def _own_words(words: list[str]) -> tuple[list[str], bool]:
    """Remove Django's own options; return the other words, and whether to skip checks.

    Django has applied `--settings` to the environment and `--pythonpath` to `sys.path`. The latter
    stays: `poorhttp dev` has the same option.
    """
    rest: list[str] = []
    skips = False
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "--settings":
            del words[:1]
        elif word == "--skip-checks":
            skips = True
        elif word == "--no-color":
            os.environ["NO_COLOR"] = "1"
        elif not word.startswith("--settings="):
            rest.append(word)
    return rest, skips


def _target() -> str:
    application = getattr(settings, "WSGI_APPLICATION", None)
    if not application or "." not in application:
        return SETTINGS_APPLICATION
    module, _, name = application.rpartition(".")
    return f"{module}:{name}"


def _paths(program: str) -> list[str]:
    """Return the project's folders, except the current one, which Python searches anyway."""
    folders = []
    if os.path.basename(program) == MANAGE:
        folders.append(os.path.dirname(os.path.abspath(program)))
    module = sys.modules.get(os.environ.get("DJANGO_SETTINGS_MODULE", ""))
    file = getattr(module, "__file__", None)
    if module is not None and file:
        place = os.path.abspath(file).removesuffix("/__init__.py").removesuffix(".py")
        folders.append(place[: -len(module.__name__) - 1])
    return [folder for folder in dict.fromkeys(folders) if folder != os.getcwd()]
