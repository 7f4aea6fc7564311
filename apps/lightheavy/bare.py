"""The page `light` as a bare WSGI function, to compare it with the one in a dispatch table.

Needs nothing but Python, so that every server can serve it.
"""

from __future__ import annotations

from time import strftime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

TOP = """\
<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>The light page</title>
  </head>
  <body>
    <h1>The light page</h1>
    <p>
      Good day to you, program or person. Hardly any work went into this page: it is written line by
      line, and all that is new in it since you last looked is the date and the time. There is also
      <a href="/heavy">a heavy page</a>, for which some patterns are matched and some digests made.
    </p>
"""
NOW = "    <p>It is <code>%Y-%m-%d</code>, the clock says <code>%H:%M:%S</code>.</p>\n"
END = """\
    <p>Thank you for the visit.</p>
  </body>
</html>
"""


def light(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Show the page."""
    body = (TOP + strftime(NOW) + END).encode()
    start_response(
        "200 OK",
        [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body)))],
    )
    return [body]


application = light
