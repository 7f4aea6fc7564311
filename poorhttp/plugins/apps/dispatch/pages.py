"""Default HTML pages of dispatch tables for error statuses, such as 404."""

from __future__ import annotations

from poorhttp._core import escape

from .status import status_line

#: `escape` is for applications.
__all__ = ["error_page", "escape"]

_explanations: dict[int, str] = {
    400: "The request could not be understood.",
    401: "You must log in to see this page.",
    403: "You are not allowed to see this page.",
    404: "There is nothing at this address.",
    405: "This address does not accept this kind of request.",
    413: "The request is larger than this address accepts.",
    500: "The application failed. The server's log says why.",
    501: "The server does not know this kind of request.",
    503: "The application cannot respond at the moment. Try again later.",
}

_page = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ max-width: 40em; margin: 4em auto; padding: 0 1em; font-family: sans-serif; color: #333 }}
h1 {{ font-weight: normal; border-bottom: 1px solid #ccc }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{message}</p>
<p><code>{method} {path}</code></p>
</body>
</html>
"""


def error_page(code: int, method: str, path: str, message: str = "") -> str:
    """Return the HTML page of an error status.

    Args:
        code: the status, 400 to 599.
        method: the request's method.
        path: the request's path, unescaped.
        message: a sentence for the reader instead of the default one, unescaped.
    """
    title = status_line(code)
    return _page.format(
        title=title,
        message=escape(message or _explanations.get(code, f"{title.partition(' ')[2]}.")),
        method=escape(method),
        path=escape(path),
    )
