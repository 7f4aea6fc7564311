"""The target `cgi:FOLDER`: an application that runs the CGI programs of a folder (RFC 3875)."""

from __future__ import annotations

from poorhttp.config.settings import Settings
from poorhttp.plugins.apps.cgi.local_redirect import mount
from poorhttp.plugins.apps.folder import check_folder
from poorhttp.targets.target import PROGRAMS, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.apps.cgi.application import Programs


def load(folder: str, settings: Settings | None = None) -> Programs:
    """Return the application of a folder, and prepare this process for starting programs.

    Raises:
        ApplicationError: there is no such folder.
    """
    check_folder("cgi", folder, "the programs are")

    from poorhttp.plugins.apps.cgi.application import Programs
    from poorhttp.plugins.apps.cgi.inheritance import prevent_inheritance

    prevent_inheritance()
    return Programs(folder, settings or Settings())


TARGET = Target(
    load, PROGRAMS, takes_settings=True, whole_body="CGI programs get it whole", mount=mount
)
