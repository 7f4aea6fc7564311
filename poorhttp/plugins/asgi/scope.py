"""Scopes of HTTP requests, from their heads (ASGI, HTTP and WebSocket message format)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Scope = dict[str, Any]

    #: What `poorhttp._core.Request.take_head` returns: method, version, scheme, path (with that of
    #: the mount), path as it was sent, query, path of the mount, header fields, client and server.
    #: Texts of paths are UTF-8. Fields have names in lower case; those with an underscore are left
    #: out, as in the environ. `Cookie` is one field, and `Host` is what trusted proxies report.
    RequestHead = tuple[
        str,
        str,
        str,
        str,
        bytes,
        bytes,
        str,
        tuple[tuple[bytes, bytes], ...],
        tuple[str, int] | None,
        tuple[str | None, int | None],
    ]

#: Versions of the specification and of its part on HTTP: since 2.4, `send` raises an OSError when
#: the client has left.
ASGI = {"version": "3.0", "spec_version": "2.4"}


def of_http(head: RequestHead, state: dict[str, Any] | None) -> Scope:
    """Return the scope of a request; `state` is that of the lifespan, `None` without one."""
    method, version, scheme, path, raw_path, query, root_path, fields, client, server = head
    scope: Scope = {
        "type": "http",
        # The application may change all of it.
        "asgi": ASGI.copy(),
        "http_version": version,
        "method": method,
        "scheme": scheme,
        "path": path,
        "raw_path": raw_path,
        "query_string": query,
        "root_path": root_path,
        "headers": [*fields],
        "client": client,
        "server": server,
        "extensions": {
            "http.response.pathsend": {},
            "http.response.early_hint": {},
        },
    }
    if state is not None:
        scope["state"] = state.copy()
    return scope


def environ_of(scope: Scope) -> dict[str, Any]:
    """Return the environ of the request with a scope, for hooks that look at requests of WSGI."""
    client, server = scope["client"] or ("", ""), scope["server"]
    query = scope["query_string"].decode("latin-1")
    target = (scope.get("raw_path") or b"/").decode("latin-1") + (f"?{query}" if query else "")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode("utf-8", "replace").decode("latin-1"),
        "QUERY_STRING": query,
        "REQUEST_URI": target,
        "RAW_URI": target,
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": str(server[0] or ""),
        "SERVER_PORT": str(server[1] or ""),
        "REMOTE_ADDR": client[0],
        "wsgi.url_scheme": scope["scheme"],
    }
    for name, value in scope["headers"]:
        environ[f"HTTP_{name.decode('latin-1').upper().replace('-', '_')}"] = value.decode(
            "latin-1"
        )
    return environ
