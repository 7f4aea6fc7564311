"""`manage.py dev`: the development server from Django's own command."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, SystemCheckError
from django.db import connections

from poorhttp.dev.discovery.dev_command import DevCommand
from poorhttp.errors import Failure
from poorhttp.targets.source.django import MANAGE, SETTINGS_APPLICATION


class Command(BaseCommand):  # type: ignore[misc]  # Django has no types
    """Say what Django's checks find, then become `poorhttp dev` with the project's settings."""

    help = (
        "Serves the project while you work on it, by poorhttp dev: [[HOST:]PORT] and any option of "
        "it (manage.py dev --help)."
    )
    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Read the line as `poorhttp dev` does: its options are not ours to repeat."""
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
        # Nothing that is open here goes on there.
        connections.close_all()
        command_line.execute("" if command_line.serves else _target(), _paths(argv[0]))

    def handle(self, *args: Any, **options: Any) -> None:
        """Refuse to be called by a program: the process would become another."""
        raise CommandError("dev becomes the server; a program starts poorhttp dev instead")

    def _check(self) -> None:
        """Say what runserver says; what is wrong is shown by the server as well, so it begins."""
        try:
            self.check(display_num_errors=True)
            self.check_migrations()
        except SystemCheckError as error:
            self.stderr.write(str(error))
        except Exception as error:
            self.stderr.write(f"The checks ended early: {type(error).__name__}: {error}")


def _own_words(words: list[str]) -> tuple[list[str], bool]:
    """Take away what Django has acted upon, or we do; return the rest, and whether to skip checks.

    Django puts `--pythonpath` on its path, and `--settings` into the environment, wherever they
    stand. The first means the same to us.
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
    """Where the project is, unless that is the current folder, where Python looks anyway."""
    folders = []
    if os.path.basename(program) == MANAGE:
        folders.append(os.path.dirname(os.path.abspath(program)))
    module = sys.modules.get(os.environ.get("DJANGO_SETTINGS_MODULE", ""))
    file = getattr(module, "__file__", None)
    if module is not None and file:
        place = os.path.abspath(file).removesuffix("/__init__.py").removesuffix(".py")
        folders.append(place[: -len(module.__name__) - 1])
    return [folder for folder in dict.fromkeys(folders) if folder != os.getcwd()]
