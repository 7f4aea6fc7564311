"""Checks the folder of a target, and suggests similar names for a misspelt one."""

from __future__ import annotations

import os

from poorhttp.config.suggestions import nearest
from poorhttp.errors import ApplicationError


def check_folder(scheme: str, folder: str, content: str) -> None:
    """Raise an ApplicationError unless the folder of a target exists.

    Args:
        scheme: the scheme of the target.
        folder: path of the folder.
        content: the files in it, as in `"the programs are"`.
    """
    if not folder:
        raise ApplicationError(f"{scheme}: names no folder: say {scheme}:FOLDER, where {content}")
    if os.path.isdir(folder):
        return
    if os.path.exists(folder):
        raise ApplicationError(f"{folder} is a file; say {scheme}:FOLDER, where {content}")
    similar = similar_folder(folder)
    hint = f'; did you mean "{scheme}:{similar}"?' if similar else ""
    raise ApplicationError(f"there is no folder {folder}{hint}")


def similar_folder(folder: str) -> str:
    """Return the path of an existing folder with nearly the same name, in the same parent folder.

    Relative to the same folder as `folder`. Empty if there is none, or the parent is not readable.
    """
    parent, name = os.path.split(os.path.abspath(folder))
    if not os.access(parent, os.R_OK | os.X_OK):
        return ""
    near = nearest(name, [entry.name for entry in os.scandir(parent) if entry.is_dir()])
    return os.path.join(os.path.dirname(folder.rstrip("/")), near) if near else ""
