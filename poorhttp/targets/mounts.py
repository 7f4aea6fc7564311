"""Combines several applications into one: by the host of a request, and by its path prefix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from poorhttp.targets.static import not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    #: Applications by their prefixes: as in PATH_INFO (bytes as Latin-1), no slash at the end.
    Table = Mapping[str, WSGIApplication]


class Mounts:
    """The application that calls the mounted application for each request."""

    def __init__(self, hosts: Mapping[str, Table]) -> None:
        """Take the table of each host; "" is the default, `*.example.org` matches subdomains."""
        tables = dict(hosts)
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
        table = self._table_of_host(environ) if self._exact else self._others
        path: str = environ.get("PATH_INFO", "")
        end = len(path)
        if end > self._longest:
            # Clients choose the path: do not search parts that are longer than any prefix.
            end = path.rfind("/", 0, self._longest + 1)
        while end >= 0:
            application = table.get(path[:end])
            if application is not None:
                if end:
                    environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + path[:end]
                    environ["PATH_INFO"] = path[end:]
                return application(environ, start_response)
            end = path.rfind("/", 0, end)
        return not_found(environ, start_response)

    def _table_of_host(self, environ: WSGIEnvironment) -> Table:
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


def host_of(environ: WSGIEnvironment) -> str:
    """Return the host of a request: in lower case, without port and final dot."""
    name: str = environ.get("HTTP_HOST", "").strip().lower()
    name = name[: name.find("]") + 1] if name.startswith("[") else name.partition(":")[0]
    return name.removesuffix(".")
