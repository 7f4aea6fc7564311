"""Local redirects (RFC 3875 section 6.2.2): the whole service answers in place of a program."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

#: Environ key of the application that answers them.
LOCAL_REDIRECT = "poorhttp.local_redirect"


def mount(programs: WSGIApplication, prefix: str, whole: WSGIApplication) -> WSGIApplication:
    """Return the application of a folder that finds what to redirect to in its environ.

    Args:
        programs: the application of the folder.
        prefix: where it is mounted: a part of SCRIPT_NAME, bytes as Latin-1.
        whole: the application of the service.
    """

    def mounted(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        script = environ.get("SCRIPT_NAME", "").removesuffix(prefix)
        environ[LOCAL_REDIRECT] = partial(_redirected, whole, script)
        return programs(environ, start_response)

    return mounted


def _redirected(
    whole: WSGIApplication, script: str, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answer a local redirect, with an application or a static file.

    Args:
        whole: the application of the service.
        script: SCRIPT_NAME of the original request, with which paths of the program begin.
        environ: of the new request.
        start_response: of the original request.
    """
    environ["SCRIPT_NAME"] = script
    path = environ["REQUEST_URI"].partition("?")[0]
    if script and path.startswith(f"{script}/"):
        path = path[len(script) :]
        environ["PATH_INFO"] = environ["PATH_INFO"][len(script) :]
    # Static files are answered by the core, whose `start_response` this is.
    send_static = getattr(start_response, "send_static", None)
    if send_static is not None and send_static(path.encode("latin-1")):
        return []
    environ.pop(LOCAL_REDIRECT, None)
    return whole(environ, start_response)
