"""Django with `DEBUG`: exceptions that it would answer with a page of its own become ours."""

from __future__ import annotations

from types import TracebackType

from poorhttp.dev.debug.responses import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Lines of a template that are shown before and behind the one that has failed.
CONTEXT = 5


def pass_exceptions_on() -> None:
    """Put a function of ours in the place of Django's technical page.

    It is called with `DEBUG` only. What it returns passes through all middleware as the answer of
    any view; raised again, the exception would be caught by each of them.
    """
    from django.http import HttpResponseServerError
    from django.views import debug

    from poorhttp.dev.debug.middleware import ANSWERED_EXCEPTION, DEBUG, FRAMEWORK_DETAILS

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
        environ[ANSWERED_EXCEPTION] = error

        def technical() -> str:
            """Django's own page, with request and settings: for those who have entered the PIN."""
            page = theirs(request, kind, error, traceback, status_code).content.decode()
            return f'<iframe class="values" srcdoc="{escaped(page)}"></iframe>'

        environ[FRAMEWORK_DETAILS] = (
            template_of(error),
            "Django's page: request and settings",
            technical,
        )
        response = HttpResponseServerError()
        # The page goes with a line in the log; Django need not write it as well.
        response._has_been_logged = True
        return response

    debug.technical_500_response = technical_500_response


def template_of(error: BaseException) -> str:
    """Return the lines of a template around the one that has failed, as HTML; "" if none has."""
    told = getattr(error, "template_debug", None)
    if not isinstance(told, dict):
        return ""
    failed = told["line"]
    lines = "".join(
        # Some versions of Django have escaped them.
        f"{'&gt;' if number == failed else ' '} {number:>4} | "
        f"{(str(line) if hasattr(line, '__html__') else escaped(line)).rstrip()}\n"
        for number, line in told["source_lines"]
        if abs(number - failed) <= CONTEXT
    )
    name = escaped(f"{told['name']}:{failed}")
    return f'<h2>Template</h2><div class="frame"><h4>{name}</h4><pre>{lines}</pre></div>'
