"""Finds the settings module and the application of a Django project, by its source."""

from __future__ import annotations

import ast
import os
import re

from poorhttp.config.ini import read_file
from poorhttp.plugins.discovery.source.python import Source, Sources

MANAGE = "manage.py"
VARIABLE = "DJANGO_SETTINGS_MODULE"
STATIC_FILES = "django.contrib.staticfiles"

#: Target that serves the application which the Django settings name.
SETTINGS_APPLICATION = "poorhttp.plugins.discovery.django.wsgi:make_application()"


class DjangoProject:
    """A Django project, found by its `manage.py`.

    Attributes:
        settings: name of its settings module; empty if it is not known.
        target: of its application.
        static: URL of its static files; empty if it has none.
        root: the folder of its modules.
    """

    def __init__(self, sources: Sources, manage: Source) -> None:
        """Read the files; `DJANGO_SETTINGS_MODULE` has the same meaning as for Django."""
        default, forced = _settings_module(manage)
        self.settings = default if forced else os.environ.get(VARIABLE) or default
        self.target = SETTINGS_APPLICATION
        self.static = ""
        file, self.root = sources.find(self.settings)
        if not file:
            return
        read = sources.all_of(sources.read(file))
        application = _text(read, "WSGI_APPLICATION")
        if application and "." in application:
            module, _, name = application.rpartition(".")
            self.target = f"{module}:{name}"
        if any(STATIC_FILES in source.texts() for source in read):
            url = _text(read, "STATIC_URL") or ""
            # As Django does with a relative URL.
            self.static = url if url.startswith(("/", "http")) else f"/{url}" if url else ""


def is_project(manage: Source) -> bool:
    """Tell whether a `manage.py` is that of a Django project."""
    if manage.error:
        return b"django" in _raw(manage)
    return any(VARIABLE in text for text in manage.texts()) or any(
        isinstance(node, ast.ImportFrom) and (node.module or "").startswith("django")
        for node in ast.walk(manage.tree)
    )


def _settings_module(manage: Source) -> tuple[str, bool]:
    """Return the settings module that a file sets, and whether it overrides the environment.

    By `os.environ.setdefault("DJANGO_SETTINGS_MODULE", NAME)`, or an assignment.
    """
    for node in ast.walk(manage.tree):
        if isinstance(node, ast.Call) and len(node.args) == 2:
            name, value = (_literal(argument) for argument in node.args)
            if name == VARIABLE and value:
                return value, False
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            name, value = _literal(node.targets[0].slice), _literal(node.value)
            if name == VARIABLE and value:
                return value, True
    if manage.error:
        found = re.search(rb"DJANGO_SETTINGS_MODULE[\"']\W+([\w.]+)[\"']", _raw(manage))
        if found:
            return found[1].decode("ascii", "replace"), False
    return "", False


def _literal(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _text(read: list[Source], name: str) -> str | None:
    return next((text for source in read if (text := source.text(name)) is not None), None)


def _raw(source: Source) -> bytes:
    try:
        return read_file(source.file, 1 << 20)
    except OSError:
        return b""
