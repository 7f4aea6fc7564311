"""What the development server adds to a server: a function for each place that asks for it.

Each part is imported when it is asked for: a process has only what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.settings import Settings
    from poorhttp.dev.console import Console
    from poorhttp.dev.reload.reloader import Reloader
    from poorhttp.net.listener import Listener


class DevServer:
    """The parts of the development server, by what they are for."""

    # For each service

    def check_listeners(self, settings: Settings, listeners: Iterable[Listener]) -> None:
        """See to it that only this machine reaches the error pages.

        Raises:
            ConfigError: others do.
        """
        from poorhttp.dev.debug import access_control

        access_control.check(settings, listeners)

    def pin_announcement(self) -> str:
        """Return the line that tells the PIN of the debugger; all forks of this process have it."""
        from poorhttp.dev.debug import pin

        return pin.announcement()

    def prepare(self, settings: Settings) -> None:
        """Have frameworks let exceptions go; before the application is imported."""
        from poorhttp.dev.debug import middleware

        middleware.prepare(settings)

    def with_static_files(self, application: WSGIApplication, target: str) -> WSGIApplication:
        """Return an application that answers for Django's static files too.

        Raises:
            ApplicationError: Django does not know where they are.
        """
        from poorhttp.dev.discovery.django import static_files

        return static_files.with_static_files(application, target)

    def with_error_pages(self, application: WSGIApplication, settings: Settings) -> WSGIApplication:
        """Return the application with pages for what it raises."""
        from poorhttp.dev.debug import middleware

        return middleware.with_error_pages(application, settings)

    # For the main process

    def reloader(
        self, *, uses_fork_server: bool, file: str | None, say: Callable[[str, str], None]
    ) -> Reloader:
        """Return what has a new version serve when a file was saved; see `Reloader`."""
        from poorhttp.dev.reload.reloader import Reloader

        return Reloader(uses_fork_server=uses_fork_server, file=file, say=say)

    def console(self) -> Console:
        """Return what shows requests in the terminal, keeps profiles and opens the browser."""
        from poorhttp.dev.console import Console

        return Console()
