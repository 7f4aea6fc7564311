"""Reports modules that requests import, which are then preimported, and watched for changes."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from poorhttp.plugins.dev.reload.preimport.loaded_modules import folders, since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from poorhttp.plugins.dev.reload.preimport.preimport import Preimporter
    from poorhttp.plugins.dev.reload.spawner import VersionSpawner


class ImportTracker:
    """Wraps an application and reports the modules that it imports."""

    def __init__(
        self,
        application: WSGIApplication,
        spawner: VersionSpawner,
        preimporter: Preimporter | None,
    ) -> None:
        self._application = application
        self._spawner = spawner
        self._preimporter = preimporter
        # The fork server has reported its own imports itself.
        self._seen = spawner.modules_before

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
        shared = self._spawner.shared
        if self._preimporter is not None:
            shared.report_modules(self._preimporter.new_imports())
        shared.report_folders(sorted(folders(names)))
