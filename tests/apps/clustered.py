"""The application of a host of a cluster: apps/versioned.py, and /wait."""

from __future__ import annotations

from collections.abc import Iterable

from poorhttp.targets import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

versioned = load("tests.apps.versioned:application")
gate = load("tests/apps/gate.py")


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with one of them."""
    chosen = gate if environ["PATH_INFO"] == "/wait" else versioned
    return chosen(environ, start_response)
