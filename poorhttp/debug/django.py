"""Django with `DEBUG`: exceptions that it would answer with a page of its own become ours."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any


def hand_on() -> None:
    """Put a function of ours in the place of Django's technical page.

    It is called with `DEBUG` only. What it returns passes through all middleware as the answer of
    any view; raised again, the exception would be caught by each of them.
    """
    from django.http import HttpResponseServerError
    from django.views import debug

    from poorhttp.debug.page import ANSWERED, DEBUG

    theirs = debug.technical_500_response
    if getattr(theirs, "__module__", "") == __name__:
        return

    def technical_500_response(
        request: Any,
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType,
        status_code: int = 500,
    ) -> Any:
        """Leave the exception to us; but for those of a client (400)."""
        environ = getattr(request, "environ", None)
        if status_code != 500 or not environ or DEBUG not in environ:
            return theirs(request, kind, error, traceback, status_code)
        environ[ANSWERED] = error
        response = HttpResponseServerError()
        # The page goes with a line in the log; Django need not write it as well.
        response._has_been_logged = True
        return response

    debug.technical_500_response = technical_500_response
