"""The target `static:FOLDER`: files that the core serves without Python."""

from __future__ import annotations

import os
from collections.abc import Iterable

from poorhttp.config.parsers import path
from poorhttp.config.suggestions import nearest
from poorhttp.errors import ConfigError
from poorhttp.process.privileges import closed_folder, user_name
from poorhttp.targets.target import FILES, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def folder_of(text: str, place: str) -> str:
    """Return the absolute path of a folder; a ConfigError beginning with `place` if it is none."""
    try:
        folder = os.path.abspath(path(text))
    except ValueError as error:
        raise ConfigError(f"{place}: {error}; say static:FOLDER") from None
    if not os.path.isdir(folder):
        check_open(folder, place)
        similar = similar_folder(path(text))
        hint = (
            f'did you mean "{similar}"?' if similar else f"relative paths start from {os.getcwd()}"
        )
        raise ConfigError(f'{place}: "{text}" is not a folder; {hint}')
    return folder


def similar_folder(folder: str) -> str:
    """Return the path of an existing folder with nearly the same name, in the same parent folder.

    Relative to the same folder as `folder`. Empty if there is none, or the parent is not readable.
    """
    parent, name = os.path.split(os.path.abspath(folder))
    if not os.access(parent, os.R_OK | os.X_OK):
        return ""
    near = nearest(name, [entry.name for entry in os.scandir(parent) if entry.is_dir()])
    return os.path.join(os.path.dirname(folder.rstrip("/")), near) if near else ""


def check_open(folder: str, place: str) -> None:
    """Raise a ConfigError if the user of this process may not enter a folder."""
    closed = closed_folder(folder)
    if closed is not None:
        raise ConfigError(f"{place}: {closed} is closed to user {user_name(os.geteuid())}")


def load(folder: str) -> WSGIApplication:
    """Return the application for paths without a file; a ConfigError if there is no such folder."""
    folder_of(folder, f"static:{folder}")
    return not_found


def not_found(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """An application that answers every request with 404."""
    start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
    return [b"404 Not Found\n"]


TARGET = Target(load, FILES)
