"""The class `Target`: how the application of a scheme, as in `static:FOLDER`, is loaded."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# What the rest of a target names: a callable, a folder of such files, or a file that configures an
# application. The development server decides by it which files to watch, and which saves start the
# application again.
CALLABLE = "callable"
CODE = "code"
CONFIGURATION = "configuration"
FILES = "files"
TEMPLATES = "templates"
PROGRAMS = "programs"


class Target:
    """A kind of target.

    Attributes:
        load: takes the rest of the target, and the settings if `takes_settings`; returns a WSGI
            application.
        kind: what the rest names, one of the above.
        takes_settings: loading depends on options, which may differ between hosts.
    """

    def __init__(
        self, load: Callable[..., Any], kind: str = CONFIGURATION, *, takes_settings: bool = False
    ) -> None:
        self.load = load
        self.kind = kind
        self.takes_settings = takes_settings
