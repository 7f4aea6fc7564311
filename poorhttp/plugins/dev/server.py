"""Interface of the development server to the rest of the server: `DevServer`.

Each method imports its part when it is called, so that a process has only the parts it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.settings import Settings
    from poorhttp.net.listener import Listener
    from poorhttp.plugins.dev.console import Console
    from poorhttp.plugins.dev.reload.reloader import Reloader


class DevServer:
    """Entry points into the parts of the development server."""

    # For each service

    def check_listeners(self, settings: Settings, listeners: Iterable[Listener]) -> None:
        """Check that only this machine reaches the error pages.

        Raises:
            ConfigError: other machines reach them.
        """
        from poorhttp.plugins.dev.debug import access_control

        access_control.check(settings, listeners)

    def pin_announcement(self) -> str:
        """Return the message with the debugger's PIN, which all forks of this process share."""
        from poorhttp.plugins.dev.debug import pin

        return pin.announcement()

    def prepare(self, settings: Settings) -> None:
        """Have frameworks raise exceptions; to be called before the application is imported."""
        from poorhttp.plugins.dev.debug import middleware

        middleware.prepare(settings)

    def with_static_files(self, application: WSGIApplication, target: str) -> WSGIApplication:
        """Return an application that also serves Django's static files.

        Raises:
            ApplicationError: Django's settings for static files are wrong.
        """
        from poorhttp.plugins.discovery.django import static_files

        return static_files.with_static_files(application, target)

    def with_error_pages(self, application: WSGIApplication, settings: Settings) -> WSGIApplication:
        """Return the application, with pages for its exceptions."""
        from poorhttp.plugins.dev.debug import middleware

        return middleware.with_error_pages(application, settings)

    # For the main process

    def reloader(
        self, *, uses_fork_server: bool, file: str | None, say: Callable[[str, str], None]
    ) -> Reloader:
        """Return the `Reloader`, which starts a new generation when a file is saved."""
        from poorhttp.plugins.dev.reload.reloader import Reloader

        return Reloader(uses_fork_server=uses_fork_server, file=file, say=say)

    def console(self) -> Console:
        """Return the `Console`: requests in the terminal, profiles, the browser."""
        from poorhttp.plugins.dev.console import Console

        return Console()
