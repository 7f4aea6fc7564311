"""The light page: a greeting, the date and the time."""

from __future__ import annotations

from time import strftime

from bare import END, NOW, TOP

from poorhttp import dispatch as http

_top = TOP.splitlines(keepends=True)
_end = END.splitlines(keepends=True)


def light(req: http.Request) -> int:
    """Write the page, a line at a time."""
    req.content_type = "text/html"
    for line in _top:
        req.write(line)
    req.write(strftime(NOW))
    for line in _end:
        req.write(line)
    return http.DONE
