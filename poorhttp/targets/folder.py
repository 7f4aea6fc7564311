"""Suggestions for misspelt folders. Imported only for error messages."""

from __future__ import annotations

import os

from poorhttp.config.suggestions import nearest


def similar_folder(folder: str) -> str:
    """Return the path of an existing folder with nearly the same name, in the same parent folder.

    Relative to the same folder as `folder`. Empty if there is none, or the parent is not readable.
    """
    parent, name = os.path.split(os.path.abspath(folder))
    if not os.access(parent, os.R_OK | os.X_OK):
        return ""
    near = nearest(name, [entry.name for entry in os.scandir(parent) if entry.is_dir()])
    return os.path.join(os.path.dirname(folder.rstrip("/")), near) if near else ""
