"""Takes over exceptions that Django with `DEBUG` would answer with its own error page."""

from __future__ import annotations

from types import TracebackType

from poorhttp.plugins.dev.debug.responses import ANSWERED_EXCEPTION, DEBUG, FRAMEWORK_DETAILS
from poorhttp.plugins.dev.escape import for_html

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def pass_exceptions_on() -> None:
    """Replace Django's function for the technical error page, which it calls with `DEBUG` only.

    The replacement returns an empty response, which passes through all middleware, and leaves the
    exception in the environ: if it were raised again, each middleware would catch it.
    """
    from django.http import HttpResponseServerError
    from django.views import debug

    original = debug.technical_500_response
    if getattr(original, "__module__", "") == __name__:
        return

    def technical_500_response(
        request: Any,
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType,
        status_code: int = 500,
    ) -> Any:
        """Leave the exception in the environ, except those with a status 400."""
        environ = getattr(request, "environ", None)
        if status_code != 500 or not environ or DEBUG not in environ:
            return original(request, kind, error, traceback, status_code)
        environ[ANSWERED_EXCEPTION] = error

        def technical() -> str:
            """Return Django's page with request and settings, for clients with the PIN."""
            page = original(request, kind, error, traceback, status_code).content.decode()
            return f'<iframe class="values" srcdoc="{for_html(page)}"></iframe>'

        environ[FRAMEWORK_DETAILS] = "Django's page: request and settings", technical
        response = HttpResponseServerError()
        # The server logs the exception; Django must not log it as well.
        response._has_been_logged = True
        return response

    debug.technical_500_response = technical_500_response
