"""Request methods as bits, joined with `|` (RFC 9110 section 9, RFC 5789)."""

from __future__ import annotations

# POST, GET and HEAD have the numbers of the first Poor HTTP: tables may use the bare numbers.
METHOD_POST = 1
METHOD_GET = 2
METHOD_HEAD = 4
METHOD_PUT = 8
METHOD_DELETE = 16
METHOD_PATCH = 32
METHOD_OPTIONS = 64
METHOD_TRACE = 128
METHOD_CONNECT = 256

METHOD_GET_POST = METHOD_GET | METHOD_POST
METHOD_HEAD_GET = METHOD_HEAD | METHOD_GET
METHOD_HEAD_POST = METHOD_HEAD | METHOD_POST
METHOD_HEAD_GET_POST = METHOD_HEAD | METHOD_GET | METHOD_POST
METHOD_ALL = 511

methods: dict[str, int] = {
    "GET": METHOD_GET,
    "HEAD": METHOD_HEAD,
    "POST": METHOD_POST,
    "PUT": METHOD_PUT,
    "DELETE": METHOD_DELETE,
    "PATCH": METHOD_PATCH,
    "OPTIONS": METHOD_OPTIONS,
    "TRACE": METHOD_TRACE,
    "CONNECT": METHOD_CONNECT,
}

# Bits that accept a method, any one of them: a handler for GET also takes HEAD.
accepted: dict[str, int] = {**methods, "HEAD": METHOD_HEAD_GET}


def allow(mask: int) -> str:
    """Return the `Allow` header (RFC 9110 section 10.2.1) for a mask of methods."""
    # The application answers OPTIONS where the table does not.
    mask |= METHOD_OPTIONS
    return ", ".join(name for name, bits in accepted.items() if mask & bits)
