"""The target `cgi:FOLDER`: an application that runs the CGI programs of a folder (RFC 3875)."""

from __future__ import annotations

import os

from poorhttp.cgi.application import Programs
from poorhttp.config.settings import Settings

from ..cgi.inheritance import prevent_inheritance
from ..errors import ApplicationError


def load(folder: str, settings: Settings | None = None) -> Programs:
    """Return the application of a folder, and prepare this process for starting programs.

    Raises:
        ApplicationError: there is no such folder.
    """
    if not folder:
        raise ApplicationError("cgi: names no folder: say cgi:FOLDER, where the programs are")
    if not os.path.isdir(folder):
        raise ApplicationError(f"there is no folder {folder} (in cgi:{folder})")
    if settings is None:
        from poorhttp.config.settings import Settings

        settings = Settings()
    prevent_inheritance()
    return Programs(folder, settings)
