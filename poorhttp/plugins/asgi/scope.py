"""Scopes of HTTP requests, from their heads (ASGI, HTTP and WebSocket message format)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Scope = dict[str, Any]

    #: What `poorhttp._core.Request.take_head` returns: method, version, scheme, path (with that of
    #: the mount), path as it was sent, query, path of the mount, header fields, client, server, and
    #: variables of TLS as the environ has them (`None` without TLS).
    #: Texts of paths are UTF-8. Fields have names in lower case; those with an underscore are left
    #: out, as in the environ. `Cookie` is one field, and `Host` is what trusted proxies report.
    RequestHead = tuple[
        str, str, str, str, bytes, bytes, str, tuple[tuple[bytes, bytes], ...],
        tuple[str, int] | None, tuple[str | None, int | None], tuple[tuple[str, str], ...] | None,
    ]  # fmt: skip

#: Versions of the specification and of its part on HTTP: since 2.4, `send` raises an OSError when
#: the client has left.
ASGI = {"version": "3.0", "spec_version": "2.4"}

#: Codes of versions of TLS, and of cipher suites by OpenSSL's names (RFC 8446, RFC 5289, RFC 7905).
TLS_VERSIONS = {"TLSv1.2": 0x0303, "TLSv1.3": 0x0304}
CIPHER_SUITES = {
    "TLS_AES_128_GCM_SHA256": 0x1301, "ECDHE-ECDSA-AES128-GCM-SHA256": 0xC02B,
    "TLS_AES_256_GCM_SHA384": 0x1302, "ECDHE-ECDSA-AES256-GCM-SHA384": 0xC02C,
    "ECDHE-RSA-AES128-GCM-SHA256": 0xC02F, "TLS_CHACHA20_POLY1305_SHA256": 0x1303,
    "ECDHE-RSA-AES256-GCM-SHA384": 0xC030, "ECDHE-RSA-CHACHA20-POLY1305": 0xCCA8,
    "ECDHE-ECDSA-CHACHA20-POLY1305": 0xCCA9,
}  # fmt: skip


def of_http(head: RequestHead, state: dict[str, Any] | None) -> Scope:
    """Return the scope of a request; `state` is that of the lifespan, `None` without one."""
    method, version, scheme, path, raw_path, query, root_path, fields, client, server, tls = head
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
            "http.response.trailers": {},
        },
    }
    if tls is not None:
        scope["extensions"]["tls"] = of_tls(dict(tls))
    if state is not None:
        scope["state"] = state.copy()
    return scope


def of_tls(variables: dict[str, str]) -> dict[str, Any]:
    """Return the extension `tls` from variables of the environ (ASGI, TLS extension)."""
    chain = [text for name, text in variables.items() if "\n" in text]
    return {
        "server_cert": None,
        "client_cert_chain": chain,
        "client_cert_name": variables.get("SSL_CLIENT_S_DN"),
        "client_cert_error": None,
        "tls_version": TLS_VERSIONS.get(variables.get("SSL_PROTOCOL", "")),
        "cipher_suite": CIPHER_SUITES.get(variables.get("SSL_CIPHER", "")),
    }


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
        key = name.decode("latin-1").upper().replace("-", "_")
        key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
        text = value.decode("latin-1")
        environ[key] = f"{environ[key]}, {text}" if key in environ else text
    return environ
