"""The folder that somebody meant who named one that is not there. Only errors need this."""

from __future__ import annotations

import os

from poorhttp.config.suggestions import nearest


def similar_folder(folder: str) -> str:
    """Return the folder beside one that does not exist whose name is nearly the same.

    Args:
        folder: its path as it was written; what is returned is written the same way.

    Returns:
        Empty if there is none, or if nobody may look.
    """
    parent, name = os.path.split(os.path.abspath(folder))
    if not os.access(parent, os.R_OK | os.X_OK):
        return ""
    near = nearest(name, [entry.name for entry in os.scandir(parent) if entry.is_dir()])
    return os.path.join(os.path.dirname(folder.rstrip("/")), near) if near else ""
