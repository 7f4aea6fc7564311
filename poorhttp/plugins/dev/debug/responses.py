"""Sends an error page: HTML to browsers, text to other clients."""

from __future__ import annotations

from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp.config.settings import Settings
    from poorhttp.plugins.dev.debug.debugger import Debugger

    class Owner(Protocol):
        """An application that shows exceptions."""

        settings: Settings


#: Query of the debugger's own requests (defined by Werkzeug).
MARK = "__debugger__=yes"

#: In the environ: frameworks must not answer exceptions themselves.
DEBUG = "poorhttp.debug"

#: In the environ: the exception that a framework has handled, for the error page.
ANSWERED_EXCEPTION = "poorhttp.debug.answered"

#: In the environ: a further part of the page by the framework. A title, and a function that makes
#: HTML for those who have entered the PIN.
FRAMEWORK_DETAILS = "poorhttp.debug.more"

STATUS = "500 Internal Server Error"
UNAVAILABLE = "503 Service Unavailable"

STYLE = """
body { margin: 3em auto; max-width: 60em; padding: 0 1em; font: 16px/1.5 sans-serif; }
h1 { font-size: 1.4em; border-left: .3em solid #c33; padding-left: .6em; }
pre { overflow: auto; background: #f4f4f4; padding: 1em; }
"""


def wants_html(environ: WSGIEnvironment) -> bool:
    """Whether the client accepts HTML explicitly; curl and scripts that fetch JSON send `*/*`."""
    accepted: str = environ.get("HTTP_ACCEPT", "")
    return "text/html" in accepted or "application/xhtml" in accepted


def send(
    environ: WSGIEnvironment,
    start_response: StartResponse,
    page: str,
    *,
    html: bool,
    error: BaseException | None = None,
    status: str = STATUS,
    retry_after: int = 0,
) -> Iterable[bytes]:
    """Answer with a page; with an `error`, also in place of a response that was started.

    With `retry_after` the status is 503, and the client may repeat its request after so many
    seconds. A lone surrogate is shown as an escape.
    """
    body = page.encode("utf-8", "backslashreplace")
    fields = [
        ("Content-Type", f"text/{'html' if html else 'plain'}; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("Vary", "Accept"),
    ]
    if retry_after:
        status = UNAVAILABLE
        fields.append(("Retry-After", str(retry_after)))
    if error is None:
        start_response(status, fields)
    else:
        start_response(status, fields, (type(error), error, error.__traceback__))  # type: ignore[arg-type]
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def debugger_of(owner: Owner) -> Debugger | None:
    """Return the debugger of an application, made at the first call; `None` without Werkzeug."""
    known: Debugger | None = vars(owner).get("_debugger")
    if known is not None:
        return known
    # Imported at the first exception only: a large module.
    try:
        from poorhttp.plugins.dev.debug.debugger import Debugger
    except ImportError:
        return None
    # Atomic: two threads may come here, and each page's frames are in its debugger.
    debugger: Debugger = vars(owner).setdefault("_debugger", Debugger(owner.settings))
    return debugger


def note(environ: WSGIEnvironment) -> str:
    """Return the sentence that says whether a page in place of an application reloads itself.

    The script of `poorhttp.plugins.dev.live_reload` reloads only answers to GET: a POST is not
    repeated.
    """
    if environ["REQUEST_METHOD"] == "GET":
        return "This page loads itself again when there is a new version."
    return "Send the request again when there is a new version."
