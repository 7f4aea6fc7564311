"""SERVER_RETURN: the exception by which a handler ends early, for instance to redirect."""

from __future__ import annotations

from poorhttp._core import escape

from .status import (
    DONE,
    HTTP_INTERNAL_SERVER_ERROR,
    HTTP_MOVED_PERMANENTLY,
    HTTP_MOVED_TEMPORARILY,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from .request import Request


class SERVER_RETURN(Exception):  # noqa: N801 - applications raise it under this name
    """Ends a handler from any depth, as if the handler itself had returned the code.

    Args:
        code: a result of a handler: `DONE`, `DECLINED`, an `HTTP_*` status, or a body.
        message: a sentence for the reader of the page of an error status.
    """

    def __init__(self, code: object = HTTP_INTERNAL_SERVER_ERROR, message: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.message = message


def encoded_url(url: str) -> str:
    """Return an address in which characters that cannot stand there are percent-encoded."""
    from urllib.parse import quote

    return quote(url, safe="%/:?#[]@!$&'()*+,;=-._~")


def redirect(
    req: Request, url: str, permanent: bool | int = False, text: str | None = None
) -> NoReturn:
    """Redirect the browser to another address, and end the handler.

    Headers set so far are sent along, cookies too; everything written is dropped.

    Args:
        req: the current request.
        url: absolute, or relative to the present one (RFC 9110 section 10.2.2). Characters that
            cannot stand in an address are percent-encoded, line breaks too.
        permanent: 301, and browsers remember it, instead of 302.
        text: plain text instead of the short page with a link.

    Raises:
        SERVER_RETURN: always, with `DONE`.
        RuntimeError: a part of the response has been sent.
    """
    location = encoded_url(url)
    req.discard()
    req.status = HTTP_MOVED_PERMANENTLY if permanent else HTTP_MOVED_TEMPORARILY
    for name, value in req.err_headers_out.items():
        req.headers_out.add(name, value)
    req.headers_out["Location"] = location
    if text is None:
        req.content_type = "text/html; charset=utf-8"
        req.write(f'<p>The page is at <a href="{escape(location)}">{escape(url)}</a>.</p>\n')
    else:
        req.content_type = "text/plain; charset=utf-8"
        req.write(text)
    raise SERVER_RETURN(DONE)
