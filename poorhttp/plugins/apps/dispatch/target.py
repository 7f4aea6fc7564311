"""The target `dispatch:FOLDER`: the folder's `dispatch_table.py` as an application."""

from __future__ import annotations

import os

from poorhttp.config.suggestions import nearest
from poorhttp.errors import ApplicationError
from poorhttp.plugins.apps.folder import check_folder
from poorhttp.targets import module
from poorhttp.targets.target import CODE, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.apps.dispatch import Application

TABLE = "dispatch_table.py"


def load(folder: str) -> Application:
    """Load the dispatch table of a folder, or the table with this path.

    Raises:
        ApplicationError: there is no table, it failed, or it is no valid table.
    """
    path = folder
    if not folder.endswith(".py"):
        check_folder("dispatch", folder, f"{TABLE} is")
        path = os.path.join(folder, TABLE)
        if not os.path.isfile(path):
            near = nearest(TABLE, [entry for entry in os.listdir(folder) if entry.endswith(".py")])
            hint = f'; did you mean "{near}"?' if near else ""
            raise ApplicationError(f"there is no {TABLE} in the folder {folder}{hint}")
    table = module.import_file(path)

    # Imported after the table, which imports it too: import errors are then those of the table.
    from poorhttp.plugins.apps.dispatch import Application

    return Application(table)


TARGET = Target(load, CODE)
