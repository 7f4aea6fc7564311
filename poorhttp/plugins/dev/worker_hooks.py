"""The development server in workers: error pages, and what its options ask of a service."""

from __future__ import annotations

from collections.abc import Sequence

from poorhttp.config.address import is_raw_tcp
from poorhttp.config.settings import Settings
from poorhttp.plugins.dev import options, threads_end
from poorhttp.plugins.dev.options import PREFIX, Development
from poorhttp.worker.plugin_hooks import WorkerHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from poorhttp.net.listener import Listener
    from poorhttp.worker.service import Service


class DevelopmentHooks(WorkerHooks):
    """Each method imports its part when it is called, so that a process has only what it needs."""

    def complete(self, services: Sequence[Settings]) -> None:
        """Use a certificate for this machine, with `https`."""
        for settings in services:
            if settings.of(Development).https:
                from poorhttp.plugins.dev import local_certificate

                local_certificate.apply(settings)

    def check(self, settings: Settings) -> None:
        """Check that the modules which the options need are installed."""
        options.check(settings)

    def approve(self, settings: Settings, listeners: Sequence[Listener]) -> None:
        """Refuse to show error pages to other machines."""
        if settings.of(Development).debug != "off":
            from poorhttp.plugins.dev.debug import access_control

            access_control.check(settings, listeners)

    def opened(self, service: Service) -> None:
        """Announce the PIN and the certificate, and have versions end soon, with `autoreload`."""
        settings = service.settings.of(Development)
        if settings.debug != "off" or settings.profile:
            from poorhttp.plugins.dev.debug import pin

            # Here, so that all processes that are forked from this one have the same PIN.
            service.notice = options.check(service.settings) or pin.announcement()
        if settings.https and service.transport is not None:
            lines = [service.transport.identity, service.notice]
            service.notice = "\npoorhttp ".join(filter(None, lines))
        if settings.live or settings.profile or settings.autoreload != "off":
            service.own_paths = (*service.own_paths, PREFIX)
        if settings.autoreload != "off":
            service.end_threads = threads_end.wait_for_threads
        if settings.autoreload != "off" or settings.debug != "off":
            # A developer may look at it.
            service.kills_stopped = False
            # Versions are forked from a process that has imported the libraries.
            service.imports = None

    def before_loading(self, settings: Settings) -> None:
        """Have frameworks raise exceptions."""
        if settings.of(Development).debug != "off":
            from poorhttp.plugins.dev.debug import middleware

            middleware.prepare()

    def wrap_target(
        self, application: WSGIApplication, target: str, settings: Settings
    ) -> WSGIApplication:
        """Have exceptions of an ASGI application answered with pages."""
        if settings.of(Development).debug != "off" and getattr(application, "is_asgi", False):
            from poorhttp.plugins.dev.debug import asgi_pages

            asgi_pages.add_error_pages(application, settings)
        return application

    def wrap(self, application: WSGIApplication, settings: Settings) -> WSGIApplication:
        """Return the application with pages for its exceptions."""
        if settings.of(Development).debug == "off" or is_raw_tcp(settings.target):
            return application
        from poorhttp.plugins.dev.debug import middleware

        return middleware.with_error_pages(application, settings)


HOOKS = DevelopmentHooks()
