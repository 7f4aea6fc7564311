"""The class `Target`: how the application of a scheme, as in `static:FOLDER`, is loaded."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from _typeshed.wsgi import WSGIApplication

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
        whole_body: why a body is not received while the application runs, as a sentence; mostly
            empty: `stream_request_body` can be used.
        mount: takes an application that stands beside others or files, its prefix (bytes as
            Latin-1), and the application of the whole service; returns the one to mount.
    """

    def __init__(
        self,
        load: Callable[..., Any],
        kind: str = CONFIGURATION,
        *,
        takes_settings: bool = False,
        whole_body: str = "",
        mount: Callable[[WSGIApplication, str, WSGIApplication], WSGIApplication] | None = None,
    ) -> None:
        self.load = load
        self.kind = kind
        self.takes_settings = takes_settings
        self.whole_body = whole_body
        self.mount = mount
