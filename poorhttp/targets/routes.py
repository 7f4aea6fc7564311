"""Routes of a service: which application or folder of files answers, by host and path.

The options `target`, `mount` and `static` of a service and of its hosts become routes. If there are
folders among them, the core gets the routes too, and answers from folders without Python. One
application answers the rest; it may be combined of several (`mounts.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from poorhttp import targets
from poorhttp.config.address import is_raw_tcp
from poorhttp.config.registry import registry
from poorhttp.config.settings import Settings
from poorhttp.errors import ApplicationError, ConfigError
from poorhttp.targets.static import check_open, folder_of, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class Route:
    """The application or folder that answers below a prefix of a host.

    Attributes:
        host: the host; empty for all hosts without routes of their own.
        prefix: prefix of the paths; empty for all paths.
        settings: of the host.
        origin: where the option was set.
        target: the target of an application.
        folder: absolute path of a folder of files; None for an application.
    """

    __slots__ = ("folder", "host", "origin", "prefix", "settings", "target")

    def __init__(
        self, host: str, settings: Settings, origin: str, prefix: str, target: str
    ) -> None:
        """Create a route; a ConfigError if its folder does not exist."""
        self.host = host
        self.prefix = prefix
        self.settings = settings
        self.origin = origin
        self.target = target
        self.folder: str | None = None
        if target.startswith("static:"):
            self.folder = folder_of(target.removeprefix("static:").strip(), origin)


class Routes:
    """All routes of a service, in the order of the options."""

    def __init__(self, settings: Settings, application: WSGIApplication | None = None) -> None:
        """Create the routes.

        Args:
            settings: of the service.
            application: one that is loaded already, in place of the target.

        Raises:
            ConfigError: a folder does not exist, or two routes conflict; with the place.
        """
        self._hosts = {"": settings, **settings.hosts}
        self._given = application
        self._routes = [
            route
            for host, hosted in self._hosts.items()
            for route in _routes_of(host, hosted, None if host else application)
        ]
        _refuse_conflicts(self._routes)
        #: Where applications receive request bodies while they run: host, prefix, and whether.
        self.streamed_bodies = [*self._streamed_bodies()]
        self._folders = [(route.folder, route.origin) for route in self if route.folder]
        # Folders whose files an application may send.
        sent = {
            "x_sendfile": settings.x_sendfile,
            "x_accel_redirect": [folder for _, folder in settings.x_accel_redirect],
        }
        for name, folders in sent.items():
            for number, folder in enumerate(folders):
                place = settings.origin(name, number)
                self._folders.append((folder_of(folder, place), place))

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    @property
    def application(self) -> WSGIApplication | None:
        """The application that was passed in, if no other has to be loaded; else None."""
        return self._given if self._given and self._is_single_application else None

    def table(self, own_paths: Sequence[str] = ()) -> list[tuple[str, str, str | None, Settings]]:
        """Return the routes for the core, the longest prefix first; empty without folders.

        Each row has host, prefix, folder (None: the application answers), settings of the host.
        Each host has a row for all paths, so that its requests never match rows of another host.
        `own_paths` are prefixes of which static files hide nothing.
        """
        if not any(route.folder for route in self):
            return []
        rows = []
        for host, settings in self._hosts.items():
            folders: dict[str, str | None] = {"": None, **dict.fromkeys(own_paths)}
            for route in self:
                if route.host == host:
                    # With `static_fallthrough`, an application may have the same prefix.
                    folders[route.prefix] = route.folder or folders.get(route.prefix)
            rows += [
                (host, prefix, folders[prefix], settings)
                for prefix in sorted(folders, key=len, reverse=True)
            ]
        return rows

    def _streamed_bodies(self) -> Iterator[tuple[str, str, bool]]:
        """Return the rows for the core; none without `stream_request_body`."""
        if not any(settings.stream_request_body for settings in self._hosts.values()):
            return
        for host, settings in self._hosts.items():
            rows = {"": False, **dict.fromkeys(settings.stream_request_body, True)}
            routes = {route.prefix: route for route in self if route.host == host}
            for number, prefix in enumerate(settings.stream_request_body):
                found = prefix
                while found and found not in routes:
                    found = found.rpartition("/")[0]
                why_not = targets.whole_body(routes[found].target) if found in routes else ""
                if why_not:
                    raise ConfigError(
                        f"{settings.origin('stream_request_body', number)}: the target of "
                        f"{routes[found].origin} cannot receive a body while it runs: {why_not}"
                    )
            for prefix, route in routes.items():
                if targets.whole_body(route.target):
                    rows[prefix] = False
            yield from ((host, prefix, streamed) for prefix, streamed in rows.items())

    def load(
        self, wrap: Callable[[WSGIApplication, str, Settings], WSGIApplication] | None = None
    ) -> WSGIApplication:
        """Load all applications, and return the one that answers requests without a folder.

        Args:
            wrap: called with each application, its target and the settings of its host; returns
                the application to use.

        Raises:
            ApplicationError: an application cannot be loaded; with the place if there are several.
            ConfigError: this process may not enter a folder.
        """
        for folder, place in self._folders:
            check_open(folder, place)
        applications = [route for route in self if not route.folder]
        if self._is_single_application:
            if not applications:
                return not_found
            return self._given or _load(applications[0], wrap)

        from poorhttp.targets.mounts import Mounts

        def whole(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            return mounts(environ, start_response)

        loaded: dict[object, WSGIApplication] = {}
        tables: dict[str, dict[str, WSGIApplication]] = {host: {} for host in self._hosts}
        for route in applications:
            kind = targets.find(route.target)
            key: object = route.target
            if kind.takes_settings:
                key = route.target, id(route.settings)
            if not route.target and self._given is not None:
                loaded[key] = self._given
            elif key not in loaded:
                try:
                    loaded[key] = _load(route, wrap)
                except ApplicationError as error:
                    raise ApplicationError(f"{route.origin}: {error}") from error
            prefix = route.prefix.encode().decode("latin-1")
            tables[route.host][prefix] = (
                kind.mount(loaded[key], prefix, whole) if kind.mount is not None else loaded[key]
            )
        mounts = Mounts(tables)
        return mounts

    @property
    def _is_single_application(self) -> bool:
        """Whether there is at most one application, and it answers all hosts and paths."""
        applications = [route for route in self if not route.folder]
        if len(self._hosts) > 1 or any(route.prefix for route in applications):
            return False
        return len(self._routes) == 1 or not any(
            targets.find(route.target).mount for route in applications
        )


def _load(
    route: Route, wrap: Callable[[WSGIApplication, str, Settings], WSGIApplication] | None
) -> WSGIApplication:
    try:
        application = targets.load(route.target, route.settings)
    except ApplicationError as error:
        hint = _folder_hint(route)
        if not hint:
            raise
        raise ApplicationError(f"{error}; {hint}") from error
    return application if wrap is None else wrap(application, route.target, route.settings)


def _folder_hint(route: Route) -> str:
    """Return a hint if the target is in the folder of the ini file, not in the current one.

    Modules and relative paths are looked for in the current folder or in `chdir`.
    """
    file, colon, _ = route.origin.partition(":")
    # The current folder may have been removed: a relative path is then no file.
    if not colon or not os.path.isfile(file):
        return ""
    folder = os.path.dirname(os.path.abspath(file))
    if os.path.samefile(folder, "."):
        return ""
    scheme, _, rest = route.target.partition(":")
    first = rest if registry.known("targets", scheme) else scheme
    # Of a module the outermost package.
    names = [first] if "/" in first or first.endswith(".py") else [first.split(".")[0]]
    names += [f"{name}.py" for name in names]
    if any(map(os.path.exists, names)):
        return ""  # it was found, and has failed otherwise
    if not any(name and os.path.exists(os.path.join(folder, name)) for name in names):
        return ""
    return (
        f"{names[0]} is in {folder}, the folder of {os.path.basename(file)}: start there, or write "
        f"chdir = {folder}"
    )


def _routes_of(
    host: str, settings: Settings, application: WSGIApplication | None
) -> Iterator[Route]:
    if application is not None:
        yield Route(host, settings, "the application", "", "")
    elif settings.target:
        yield Route(host, settings, settings.origin("target"), "", settings.target)
    for number, (prefix, target) in enumerate(settings.mount):
        yield Route(host, settings, settings.origin("mount", number), prefix, target)
    for number, (prefix, folder) in enumerate(settings.static):
        yield Route(host, settings, settings.origin("static", number), prefix, f"static:{folder}")


def _refuse_conflicts(routes: list[Route]) -> None:
    """Raise a ConfigError that names both places if two routes conflict."""
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
