"""The target `dispatch:FOLDER`: the folder's `dispatch_table.py` as an application."""

from __future__ import annotations

import os

from poorhttp.config.suggestions import nearest

from ..errors import ApplicationError
from . import module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..dispatch import Application

TABLE = "dispatch_table.py"


def load(folder: str) -> Application:
    """Load the dispatch table of a folder, or the table with this path.

    Raises:
        ApplicationError: there is no table, it failed, or it is no valid table.
    """
    if not folder:
        raise ApplicationError(f"dispatch: names no folder: say dispatch:FOLDER, where {TABLE} is")
    path = folder if folder.endswith(".py") else os.path.join(folder, TABLE)
    if not folder.endswith(".py"):
        _check_folder(folder)
    table = module.import_file(path)

    # Imported after the table, which imports it too: import errors are then those of the table.
    from ..dispatch import Application

    return Application(table)


def _check_folder(folder: str) -> None:
    if not os.path.isdir(folder):
        from .folder import similar_folder

        similar = similar_folder(folder)
        raise ApplicationError(
            f"there is no folder {folder}"
            + (f'; did you mean "dispatch:{similar}"?' if similar else "")
        )
    if not os.path.isfile(os.path.join(folder, TABLE)):
        near = nearest(TABLE, [entry for entry in os.listdir(folder) if entry.endswith(".py")])
        raise ApplicationError(
            f"there is no {TABLE} in the folder {folder}"
            + (f'; is "{near}" meant to be it?' if near else "")
        )
