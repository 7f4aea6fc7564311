"""Parser of the `Cookie` header (RFC 6265), for dispatch tables and pages."""

from __future__ import annotations

import re
from collections.abc import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from http.cookies import SimpleCookie

# One pair with its semicolon: a name, and a value in quotes or up to the next semicolon. Quotes
# that do not enclose the whole value mean nothing. Each part can match in one way only, so that
# the time is linear.
_PAIR = re.compile(
    r"""([^=;]*) (?: =[ \t]* (?: ("(?:[^"\\]|\\.)*") (?=[ \t]*(?:;|\Z)) | ([^;]*) ) )?
    [ \t]* (?:;|\Z)""",
    re.VERBOSE | re.DOTALL,
)

# An escaped character in quotes, as `http.cookies` and others wrote it before RFC 6265.
_ESCAPE = re.compile(r"\\(?:([0-3][0-7][0-7])|(.))", re.DOTALL)


def read_cookies(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, value, and the value as it was sent, of each cookie in order.

    Quotes around a value are removed and its backslash escapes decoded, as `http.cookies` does.
    A part without a name or an equals sign is skipped.
    """
    for found in _PAIR.finditer(text):
        name, quoted, plain = found.groups()
        name = name.strip(" \t")
        if not name or quoted is plain is None:
            continue
        if quoted is not None:
            value, sent = _ESCAPE.sub(_unescaped, quoted[1:-1]), quoted
        else:
            value = sent = plain.rstrip(" \t")
        yield name, value, sent


def _unescaped(escape: re.Match[str]) -> str:
    octal: str | None = escape[1]
    return escape[2] if octal is None else chr(int(octal, 8))


def simple_cookie(text: str) -> SimpleCookie:
    """Return the cookies of a `Cookie` header as a `SimpleCookie`; the last of a name counts.

    Names that this type refuses are skipped: reserved ones (`path`), and those that are no token.
    """
    from http.cookies import CookieError, Morsel, SimpleCookie

    cookies = SimpleCookie()
    for name, (value, sent) in {name: rest for name, *rest in read_cookies(text)}.items():
        morsel: Morsel[str] = Morsel()
        try:
            morsel.set(name, value, sent)
        except CookieError:
            continue
        dict.__setitem__(cookies, name, morsel)
    return cookies
