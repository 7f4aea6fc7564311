"""Where requests go: to an application or to a folder of files, by host and by path.

What `target`, `mount` and `static` say, for a service and for each of its hosts, becomes routes.
The core has them if there are folders among them, and answers from those without Python; what is
left is for one application, which may be made of several.
"""

from __future__ import annotations

from poorhttp import targets
from poorhttp.config.address import is_raw_tcp
from poorhttp.config.options.development import PREFIX
from poorhttp.errors import ApplicationError, ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.settings import Settings

#: Where a route begins that an argument of the library has made.
APPLICATION_ARGUMENT = "the application"


class Route:
    """One of them.

    Attributes:
        host: which it is for; empty is any that has no routes of its own.
        prefix: beginning of the paths; empty is all.
        settings: of the host.
        origin: where it was written.
        target: what answers, if that is an application.
        folder: absolute path of the files that answer; otherwise None.
    """

    __slots__ = ("folder", "host", "origin", "prefix", "settings", "target")

    def __init__(
        self, host: str, settings: Settings, origin: str, prefix: str, target: str
    ) -> None:
        """Take what was written.

        Raises:
            ConfigError: there is no such folder.
        """
        self.host = host
        self.prefix = prefix
        self.settings = settings
        self.origin = origin
        self.target = target
        self.folder: str | None = None
        if target.startswith("static:"):
            # Only for those who have files.
            from poorhttp.targets.static import folder_of

            self.folder = folder_of(target.removeprefix("static:").strip(), origin)


class Routes:
    """All routes of a service, in the order in which they were written."""

    def __init__(self, settings: Settings, application: WSGIApplication | None = None) -> None:
        """Read them.

        Args:
            settings: of the service.
            application: if it is there already; then it takes the place of the target.

        Raises:
            ConfigError: a folder is not there, or nobody could say who answers; with the place.
        """
        self._hosts = {"": settings, **settings.hosts}
        self._given = application
        self._routes = [
            route
            for host, hosted in self._hosts.items()
            for route in _routes_of(host, hosted, None if host else application)
        ]
        _refuse_conflicts(self._routes)
        self._folders = [(route.folder, route.origin) for route in self if route.folder]
        # An application may name files in these.
        for number, text in enumerate(settings.x_sendfile):
            self._add_folder(text, settings.origin("x_sendfile", number))
        for number, (_, text) in enumerate(settings.x_accel_redirect):
            self._add_folder(text, settings.origin("x_accel_redirect", number))

    def _add_folder(self, text: str, place: str) -> None:
        from poorhttp.targets.static import folder_of

        self._folders.append((folder_of(text, place), place))

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    @property
    def application(self) -> WSGIApplication | None:
        """The application that was given, if nothing has to be loaded beside it."""
        return self._given if self._is_single_application else None

    @property
    def table(self) -> list[tuple[str, str, str | None, Settings]]:
        """The routes for the core, the longest prefix of a host first; none if it has no files.

        Host, prefix, folder or None where the application answers, settings of the host. Each host
        has one for everything, so that none of its requests is anybody else's.
        """
        if not any(route.folder for route in self):
            return []
        rows = []
        for host, settings in self._hosts.items():
            folders: dict[str, str | None] = {"": None}
            if settings.live or settings.profile or settings.autoreload != "off":
                # Files may be published where the development server answers.
                folders[PREFIX] = None
            for route in self:
                if route.host == host:
                    # Behind files that let the application answer there is one of the same name.
                    folders[route.prefix] = route.folder or folders.get(route.prefix)
            rows += [
                (host, prefix, folders[prefix], settings)
                for prefix in sorted(folders, key=len, reverse=True)
            ]
        return rows

    def load(
        self, wrap: Callable[[WSGIApplication, str], WSGIApplication] | None = None
    ) -> WSGIApplication:
        """Load every application, and return the one that answers what the core does not.

        Args:
            wrap: makes another application of each, of which it is told the target too.

        Raises:
            ApplicationError: one cannot be loaded; unless it is the only one, with the place.
            ConfigError: a folder is closed to this process.
        """
        if self._folders:
            from poorhttp.targets.static import check_open

            for folder, place in self._folders:
                check_open(folder, place)
        applications = [route for route in self if not route.folder]
        if self._is_single_application:
            if not applications:
                from poorhttp.targets.static import not_found

                return not_found
            return self._given or _load(applications[0].target, self._hosts[""], wrap)

        from poorhttp.targets.mounts import Mount, Mounts

        loaded: dict[object, WSGIApplication] = {}
        mounts: dict[str, list[Mount]] = {host: [] for host in self._hosts}
        for route in applications:
            key: object = route.target
            if targets.takes_settings(route.target):
                key = route.target, id(route.settings)
            if key not in loaded:
                loaded[key] = self._load(route, wrap)
            mounts[route.host].append(
                Mount(route.prefix, loaded[key], route.target.startswith("cgi:"))
            )
        return Mounts(mounts)

    def _load(
        self, route: Route, wrap: Callable[[WSGIApplication, str], WSGIApplication] | None
    ) -> WSGIApplication:
        if not route.target:
            assert self._given is not None
            return self._given
        try:
            return _load(route.target, route.settings, wrap)
        except ApplicationError as error:
            raise ApplicationError(f"{route.origin}: {error}") from error

    @property
    def _is_single_application(self) -> bool:
        """Whether there is one application at most, and it is for everything."""
        applications = [route for route in self if not route.folder]
        if len(self._hosts) > 1 or any(route.prefix for route in applications):
            return False
        # Programs can be answered for by files, which they name and do not know.
        return len(self._routes) == 1 or not any(
            route.target.startswith("cgi:") for route in applications
        )


def _load(
    target: str,
    settings: Settings,
    wrap: Callable[[WSGIApplication, str], WSGIApplication] | None,
) -> WSGIApplication:
    application = targets.load(target, settings)
    return application if wrap is None else wrap(application, target)


def _routes_of(
    host: str, settings: Settings, application: WSGIApplication | None
) -> Iterator[Route]:
    if application is not None:
        yield Route(host, settings, APPLICATION_ARGUMENT, "", "")
    elif settings.target:
        yield Route(host, settings, settings.origin("target"), "", settings.target)
    for number, (prefix, target) in enumerate(settings.mount):
        yield Route(host, settings, settings.origin("mount", number), prefix, target)
    for number, (prefix, folder) in enumerate(settings.static):
        yield Route(host, settings, settings.origin("static", number), prefix, f"static:{folder}")


def _refuse_conflicts(routes: list[Route]) -> None:
    """See to it that there is one answer to every request.

    Raises:
        ConfigError: naming both places.
    """
    taken: dict[tuple[str, str], Route] = {}
    for route in routes:
        if is_raw_tcp(route.target) and len(routes) > 1:
            other = next(another for another in routes if another is not route)
            raise ConfigError(
                f"{route.origin}: a TCP service has neither hosts nor paths, so nothing can stand "
                f"beside it, as {other.origin} does; give it a section [service:NAME]"
            )
        if is_raw_tcp(route.target) and (route.prefix or route.host):
            raise ConfigError(
                f"{route.origin}: a TCP service has neither hosts nor paths; make it the target of "
                "a section [service:NAME]"
            )
        first = taken.setdefault((route.host, route.prefix), route)
        if first is route:
            continue
        what = f'"{route.host}{route.prefix or "/"}"'
        if bool(first.folder) == bool(route.folder):
            raise ConfigError(f"{route.origin}: {what} is served already, as {first.origin} says")
        if not route.settings.static_fallthrough:
            raise ConfigError(
                f"{route.origin}: {what} is served already, as {first.origin} says; "
                "static_fallthrough = on lets the application answer where there is no such file"
            )
