"""The manners of frameworks: finding an application, and starting from a tool of theirs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping

#: What frameworks are told by the environment where errors are shown as pages.
#:
#: Flask hands exceptions on only when it is debugging, and `app.run()` in a module that is imported
#: would be a second server: Flask's own command has it do nothing by the same means.
DEBUGGING = {"FLASK_DEBUG": "1", "FLASK_RUN_FROM_CLI": "true"}


def tell(environ: MutableMapping[str, str]) -> None:
    """Let frameworks know that somebody works on the application; what is set stays."""
    for name, value in DEBUGGING.items():
        environ.setdefault(name, value)
