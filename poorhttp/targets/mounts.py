"""Combines several applications into one: by the host of a request, and by its path prefix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from poorhttp.targets.static import not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

#: Environ key of the application that answers local redirects of CGI programs (RFC 3875 section
#: 6.2.2) as the whole server would.
LOCAL_REDIRECT = "poorhttp.local_redirect"


class Mount:
    """An application below a prefix.

    Attributes:
        prefix: as in PATH_INFO, bytes as Latin-1; without a slash at its end.
        application: answers the requests below the prefix.
        redirects: it may answer with a local redirect, as CGI programs do.
    """

    __slots__ = ("application", "prefix", "redirects")

    def __init__(self, prefix: str, application: WSGIApplication, redirects: bool = False) -> None:
        """Take a prefix as in the configuration."""
        self.prefix = prefix.encode().decode("latin-1")
        self.application = application
        self.redirects = redirects


class Mounts:
    """The application that calls the mounted application for each request."""

    def __init__(self, hosts: Mapping[str, Iterable[Mount]]) -> None:
        """Take the mounts of each host; "" is the default, `*.example.org` matches subdomains."""
        tables = {host: {mount.prefix: mount for mount in hosts[host]} for host in hosts}
        self._longest = max(len(prefix) for table in tables.values() for prefix in ("", *table))
        self._others = tables.pop("", {})
        self._exact = tables
        self._below = [
            (host[1:], tables[host])
            for host in sorted(tables, key=len, reverse=True)
            if host.startswith("*.")
        ]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333). The environ belongs to the application: it is changed."""
        table = self._mounts_of_host(environ) if self._exact else self._others
        path: str = environ.get("PATH_INFO", "")
        end = len(path)
        if end > self._longest:
            # Clients choose the path: do not search parts that are longer than any prefix.
            end = path.rfind("/", 0, self._longest + 1)
        while end >= 0:
            mount = table.get(path[:end])
            if mount is not None:
                if mount.redirects:
                    environ[LOCAL_REDIRECT] = partial(
                        self._redirected, environ.get("SCRIPT_NAME", "")
                    )
                if end:
                    environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + mount.prefix
                    environ["PATH_INFO"] = path[end:]
                return mount.application(environ, start_response)
            end = path.rfind("/", 0, end)
        return not_found(environ, start_response)

    def _mounts_of_host(self, environ: WSGIEnvironment) -> Mapping[str, Mount]:
        # Most clients send the name exactly as configured.
        table = self._exact.get(environ.get("HTTP_HOST", ""))
        if table is not None:
            return table
        host = host_of(environ)
        table = self._exact.get(host)
        if table is not None:
            return table
        for end, table in self._below:
            if host.endswith(end):
                return table
        return self._others

    def _redirected(
        self, script: str, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Answer the local redirect of a CGI program, with an application or a static file.

        Args:
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
        return self(environ, start_response)


def host_of(environ: WSGIEnvironment) -> str:
    """Return the host of a request: in lower case, without port and final dot."""
    name: str = environ.get("HTTP_HOST", "").strip().lower()
    name = name[: name.find("]") + 1] if name.startswith("[") else name.partition(":")[0]
    return name.removesuffix(".")
