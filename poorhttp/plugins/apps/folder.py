"""Checks that the folder of a target exists, such as `cgi:FOLDER`."""

from __future__ import annotations

import os

from poorhttp.errors import ApplicationError
from poorhttp.targets.static import similar_folder


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
