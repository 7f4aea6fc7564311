"""Cookies (RFC 6265): those of a request, and the `Set-Cookie` header."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from poorhttp.plugins.apps.dispatch.cookies import read_cookies

#: Characters that a value may have; others are percent-encoded, as PHP does it.
_PLAIN = "!#$&'()*+-./:<=>?@[]^_`{|}~"


class Cookies(Mapping[str, str]):
    """The cookies of a request, by name; parsed at first use.

    Of several with one name the first counts, which has the more specific path (RFC 6265 section
    5.4). Quotes are removed, then values are percent-decoded.
    """

    __slots__ = ("_known", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return f"Cookies({self._text!r})"

    def _read(self) -> dict[str, str]:
        known = self._known
        if known is None:
            known = self._known = {}
            if self._text:
                from urllib.parse import unquote

                for name, value, _ in read_cookies(self._text):
                    known.setdefault(name, unquote(value))
        return known


def set_cookie(
    name: str,
    value: str,
    *,
    path: str = "/",
    lifetime: float | None = None,
    domain: str | None = None,
    secure: bool = False,
    http_only: bool = True,
    same_site: str = "Lax",
) -> str:
    """Return the value of a `Set-Cookie` header (RFC 6265 section 4.1).

    Args:
        name: a token.
        value: any text.
        path: the browser sends it back below this path.
        lifetime: seconds; without it, until the browser is closed; 0 deletes it.
        domain: sends it to other hosts of the domain as well.
        secure: only over https.
        http_only: hidden from scripts of the page.
        same_site: `Strict`, `Lax` or `None`: whether requests from other sites carry it.

    Raises:
        ValueError: an argument has a character that a cookie cannot have.
    """
    from urllib.parse import quote

    parts = [f"{name}={quote(value, safe=_PLAIN)}", f"Path={path}"]
    if lifetime is not None:
        # Rounded up: 0 would delete the cookie.
        parts.append(f"Max-Age={-int(-lifetime // 1)}")
    if domain:
        parts.append(f"Domain={domain}")
    parts.append(f"SameSite={same_site}")
    if not name or any(mark in name for mark in '=,"()<>@:\\/[]?{} \t'):
        raise ValueError(f"{name!r} is not the name of a cookie")
    for part in parts:
        if ";" in part or not part.isprintable() or not part.isascii():
            raise ValueError(f"a cookie cannot have {part!r}; use printable ASCII without ;")
    if secure:
        parts.append("Secure")
    if http_only:
        parts.append("HttpOnly")
    return "; ".join(parts)
