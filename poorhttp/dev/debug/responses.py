"""How an error page is answered: to a browser as HTML, to all others as text."""

from __future__ import annotations

from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

#: Says that a request is one of the debugger's own (Werkzeug's word).
MARK = "__debugger__=yes"

STATUS = "500 Internal Server Error"

STYLE = """
body { margin: 3em auto; max-width: 60em; padding: 0 1em; font: 16px/1.5 sans-serif; }
h1 { font-size: 1.4em; border-left: .3em solid #c33; padding-left: .6em; }
pre { overflow: auto; background: #f4f4f4; padding: 1em; }
"""


def wants_html(environ: WSGIEnvironment) -> bool:
    """Tell whether a page is wanted. `*/*` is what curl says, and a script that fetches JSON."""
    accepted: str = environ.get("HTTP_ACCEPT", "")
    return "text/html" in accepted or "application/xhtml" in accepted


def send(
    environ: WSGIEnvironment,
    start_response: StartResponse,
    page: str,
    *,
    html: bool,
    error: BaseException | None = None,
) -> Iterable[bytes]:
    """Answer with a page, in the place of what was begun if it is that of an error.

    What is no text (half of a surrogate pair) is shown as an escape.
    """
    body = page.encode("utf-8", "backslashreplace")
    fields = [
        ("Content-Type", f"text/{'html' if html else 'plain'}; charset=utf-8"),
        ("Content-Length", str(len(body))),
        # It is about this moment only.
        ("Cache-Control", "no-store"),
        ("Vary", "Accept"),
    ]
    if error is None:
        start_response(STATUS, fields)
    else:
        start_response(STATUS, fields, (type(error), error, error.__traceback__))  # type: ignore[arg-type]
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def note(environ: WSGIEnvironment) -> str:
    """Return what becomes of a page that stands in for an application.

    Its script, which `poorhttp.dev.live_reload` adds, is for what was asked for with GET: what was
    sent with a POST is not sent again by itself.
    """
    if environ["REQUEST_METHOD"] == "GET":
        return "This page loads itself again when there is a new version."
    return "Send the request again when there is a new version."


def escaped(text: str) -> str:
    """Return text as HTML. `html.escape` would bring a table of all entities with it."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(character, entity)
    return text
