"""SERVER_RETURN: the exception by which a handler ends early, for instance to redirect."""

from __future__ import annotations

from .status import HTTP_INTERNAL_SERVER_ERROR


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
