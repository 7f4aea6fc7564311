"""What the first requests of a version had to import: for the next version, and to be watched."""

from __future__ import annotations

import sys

from poorhttp.dev.reload.preimport.loaded_modules import folders, since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from poorhttp.dev.reload.generation import Version
    from poorhttp.dev.reload.preimport.preimport import Warmth


class News:
    """An application of which it is told what it imports."""

    def __init__(
        self, application: WSGIApplication, version: Version, warmth: Warmth | None
    ) -> None:
        self._application = application
        self._version = version
        self._warmth = warmth
        # What a keeper has imported it has told itself.
        self._seen = version.begun_with

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        try:
            return self._application(environ, start_response)
        finally:
            # Whatever it was for: the request, or before that loading the application.
            if len(sys.modules) != self._seen:
                names = since(self._seen)
                self._seen = len(sys.modules)
                self._tell(names)

    def _tell(self, names: list[str]) -> None:
        lineage = self._version.lineage
        if self._warmth is not None:
            lineage.tell_modules(self._warmth.news())
        lineage.tell_folders(sorted(folders(names)))
