"""Reports modules that requests import, which are then preimported, and watched for changes."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from poorhttp.plugins.dev.reload.preimport.loaded_modules import folders, since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from poorhttp.plugins.dev.reload.preimport.preimport import Preimporter
    from poorhttp.plugins.dev.reload.shared_state import SharedState


class ImportTracker:
    """Wraps an application and reports the modules that it imports."""

    def __init__(
        self,
        application: WSGIApplication,
        shared: SharedState,
        preimporter: Preimporter | None,
        seen: int,
    ) -> None:
        """Take the application; `seen` is how many modules the fork server has reported itself."""
        self._application = application
        self._shared = shared
        self._preimporter = preimporter
        self._seen = seen

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        try:
            return self._application(environ, start_response)
        finally:
            # Imported by this request, or before it when the application was loaded.
            if len(sys.modules) != self._seen:
                names = since(self._seen)
                self._seen = len(sys.modules)
                self._report(names)

    def _report(self, names: list[str]) -> None:
        if self._preimporter is not None:
            self._shared.report_modules(self._preimporter.new_imports())
        self._shared.report_folders(sorted(folders(names)))
